//! What is a URL for this, and what is not.

use super::*;

#[test]
fn what_a_url_says() {
    let table = [
        ("https://idp.test", true, "idp.test", "/"),
        ("HTTPS://IDP.Test:443/a?b=c", true, "idp.test", "/a?b=c"),
        ("http://idp.test:8080?x", false, "idp.test:8080", "/?x"),
        ("http://idp.test:80/", false, "idp.test", "/"),
        (
            "https://127.0.0.1:8443/jwks",
            true,
            "127.0.0.1:8443",
            "/jwks",
        ),
        ("https://[::1]:8443/jwks", true, "[::1]:8443", "/jwks"),
        ("http://169.254.169.254/x", false, "169.254.169.254", "/x"),
        (
            "http://a-b_c.svc.cluster.local./%20",
            false,
            "a-b_c.svc.cluster.local.",
            "/%20",
        ),
    ];
    for (text, is_tls, authority, target) in table {
        let url = Url::parse(text).expect(text);
        let found = (url.is_tls(), url.authority(), url.target());
        assert_eq!(found, (is_tls, authority.to_owned(), target), "{text}");
    }
}

#[test]
fn what_is_no_url_for_this() {
    let long = format!("http://a.test/{}", "x".repeat(URL_BYTES_MAX));
    let table = [
        ("ftp://a.test/", UrlFault::Scheme),
        ("file:///etc/passwd", UrlFault::Scheme),
        ("unix:/run/x", UrlFault::Scheme),
        ("//a.test/", UrlFault::Scheme),
        ("", UrlFault::Scheme),
        ("https://user:word@a.test/", UrlFault::User),
        ("https://a.test@b.test/", UrlFault::User),
        ("https://a.test/x#y", UrlFault::Fragment),
        ("https://a.test#@b.test/", UrlFault::Fragment),
        ("https:///x", UrlFault::Host),
        ("https://", UrlFault::Host),
        ("https://a b.test/", UrlFault::Host),
        ("https://a..test/", UrlFault::Host),
        ("https://0/", UrlFault::Host),
        ("https://2130706433/", UrlFault::Host),
        ("https://0x7f.1/", UrlFault::Host),
        ("https://127.1/", UrlFault::Host),
        ("https://127.0.0.1./", UrlFault::Host),
        ("https://[::1/", UrlFault::Host),
        ("https://[fe80::1%25eth0]/", UrlFault::Host),
        ("https://[::1]x/", UrlFault::Host),
        ("https://a\\b.test/", UrlFault::Host),
        ("https://a%2eb/", UrlFault::Host),
        ("https://bücher.test/", UrlFault::Host),
        ("https://a.test:/", UrlFault::Port),
        ("https://a.test:0/", UrlFault::Port),
        ("https://a.test:+80/", UrlFault::Port),
        ("https://a.test:65536/", UrlFault::Port),
        ("https://a.test:80:90/", UrlFault::Port),
        ("https://a.test/a b", UrlFault::Path),
        ("https://a.test/\r\nx: y", UrlFault::Path),
        ("https://a.test/a/../b", UrlFault::Path),
        ("https://a.test/ü", UrlFault::Path),
        (&long, UrlFault::Long),
    ];
    for (text, fault) in table {
        assert_eq!(Url::parse(text), Err(fault), "{text}");
    }
}

#[test]
fn another_path_at_the_same_place() {
    let url = Url::parse("https://a.test:8443/x?y").expect("a URL");
    let other = url.at("/b?c").expect("a path");
    assert_eq!(
        (other.authority(), other.target()),
        ("a.test:8443".to_owned(), "/b?c")
    );
    assert_eq!(url.at("b"), Err(UrlFault::Path));
}
