//! What the environment and the document say of proxies.

use super::{basic, from_variable, goes_straight};
use crate::decode::Written;
use crate::target::Target;
use crate::tests::world::World;

fn document(proxy: &str) -> String {
    format!(
        "backends: {{ up: {{ url: \"https://api.example/v1\"{proxy} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    )
}

/// Host, port and authorization of the proxy that one backend has, or the faults.
fn proxy(world: &World) -> Result<Option<(String, u16, String)>, String> {
    let loaded = world.load().map_err(|faults| faults.to_string())?;
    let proxy = loaded.snapshot.endpoints[0].origin.proxy.as_deref();
    Ok(proxy.map(|proxy| {
        let value = proxy.authorization.as_ref();
        let value = value.map(|v| String::from_utf8_lossy(v.expose()).into_owned());
        (proxy.host.clone(), proxy.port, value.unwrap_or_default())
    }))
}

#[test]
fn the_environments_proxy_is_taken_unless_the_document_says_otherwise() {
    let mut world = World::with(&document(""));
    assert_eq!(proxy(&world), Ok(None));
    world.set("HTTP_PROXY", "http://other:1");
    assert_eq!(proxy(&world), Ok(None), "that is for http");
    world.set("HTTPS_PROXY", "http://us%65r:p%40ss@proxy.example:3128/");
    let theirs = (
        "proxy.example".to_owned(),
        3128,
        "Basic dXNlcjpwQHNz".to_owned(),
    );
    assert_eq!(proxy(&world), Ok(Some(theirs)));
    world.set("https_proxy", "lower:1");
    assert_eq!(proxy(&world), Ok(Some(("lower".into(), 1, String::new()))));
    world.set("NO_PROXY", "x.example, .example");
    assert_eq!(proxy(&world), Ok(None));
    world.put("tollgate.yaml", document(", proxy: \"http://own:8080\""));
    assert_eq!(proxy(&world), Ok(Some(("own".into(), 8080, String::new()))));
    world.put("tollgate.yaml", document(", proxy: none"));
    assert_eq!(proxy(&world), Ok(None));
}

#[test]
fn a_proxys_credential_is_a_secret() {
    let full = ", proxy: { url: \"http://own:8080\", credential: { file: secrets/proxy } }";
    let mut world = World::with(&document(full));
    world.put("secrets/proxy", "user:pass\n");
    let own = ("own".to_owned(), 8080, "Basic dXNlcjpwYXNz".to_owned());
    assert_eq!(proxy(&world), Ok(Some(own)));
    let loaded = world.load().expect("it is good");
    assert!(!format!("{:?}", loaded.snapshot.endpoints).contains("dXNlcj"));
    assert!(loaded.watched.iter().any(|path| path.ends_with("proxy")));
    world.put("secrets/proxy", "canary");
    let faults = proxy(&world).expect_err("no colon");
    assert!(faults.contains("user:password"), "{faults}");
    assert!(!faults.contains("canary"), "{faults}");
}

#[test]
fn proxies_that_cannot_be_are_refused_without_being_shown() {
    for (written, says) in [
        ("\"https://p:1\"", "in clear"),
        ("\"http://p:1/path\"", "no path"),
        ("\"http://user:canary@p:1\"", "user name or a password"),
        ("socks5", "not an http://"),
        ("{ credential: { inline: \"a:b\" } }", "url is missing"),
        ("{ url: \"http://p:1\", credential: {} }", "says no secret"),
    ] {
        let world = World::with(&document(&format!(", proxy: {written}")));
        let faults = proxy(&world).expect_err(written);
        assert!(faults.contains("backends.up.proxy"), "{written}: {faults}");
        assert!(faults.contains(says), "{written}: {faults}");
        assert!(!faults.contains("canary"), "{written}: {faults}");
    }
    for value in [
        "socks5://canary:1",
        "https://canary:1",
        "http://a:canary@b:x",
    ] {
        let mut world = World::with(&document(""));
        world.set("HTTPS_PROXY", value);
        let faults = proxy(&world).expect_err(value);
        assert!(faults.contains("HTTPS_PROXY"), "{faults}");
        assert!(!faults.contains("canary"), "{faults}");
    }
}

#[test]
fn exceptions_are_names_their_subdomains_addresses_and_networks() {
    let straight = |list: &str, url: &str| {
        goes_straight(
            list,
            &Target::read(url).map_err(|_| url).expect("an address"),
        )
    };
    for (list, url) in [
        ("", "http://127.0.0.1:1"),
        ("", "http://[::1]:1"),
        ("", "http://localhost"),
        ("", "http://a.localhost"),
        ("*", "http://a.b"),
        ("a.b", "http://a.b"),
        ("A.B", "http://x.a.b"),
        (".a.b", "http://x.a.b"),
        ("*.a.b", "http://x.a.b"),
        ("x,a.b:80", "http://a.b"),
        ("10.0.0.0/8", "http://10.1.2.3"),
        ("fd00::/8", "http://[fd00::2]:8000"),
        ("10.1.2.3", "http://10.1.2.3:99"),
        ("[fd00::2]:8000", "http://[fd00::2]:8000"),
        ("0.0.0.0/0", "http://192.0.2.1"),
    ] {
        assert!(straight(list, url), "{list} {url}");
    }
    for (list, url) in [
        ("", "http://a.b"),
        ("b.c", "http://a.b"),
        ("a.b", "http://xa.b"),
        ("a.b:81", "http://a.b"),
        ("10.0.0.0/8", "http://11.1.2.3"),
        ("10.0.0.0/33", "http://10.1.2.3"),
        ("10.0.0.0/8", "http://[fd00::2]"),
        ("fd00::3", "http://[fd00::2]"),
        (",., ", "http://a.b"),
    ] {
        assert!(!straight(list, url), "{list} {url}");
    }
}

#[test]
fn credentials_are_written_in_base64() {
    for (pair, value) in [
        ("", "Basic "),
        ("f", "Basic Zg=="),
        ("fo", "Basic Zm8="),
        ("foo", "Basic Zm9v"),
        ("Aladdin:open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("\u{ff}>?", "Basic w78+Pw=="),
    ] {
        assert_eq!(basic(pair.as_bytes()).expose(), value.as_bytes());
    }
    assert!(from_variable("http://h:1/x").is_none());
    assert!(from_variable("").is_none());
}
