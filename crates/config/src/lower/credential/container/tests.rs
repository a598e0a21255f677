//! Where what proves a container to its agent may go.

use super::is_trusted;

#[test]
fn a_token_goes_to_agents_this_machine_or_over_tls() {
    for url in [
        "https://anywhere.example/keys",
        "http://169.254.170.2/keys",
        "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials",
        "http://127.0.0.1:8080/keys",
        "http://127.9.9.9",
        "http://[::1]:9/",
        "http://localhost?x",
    ] {
        assert!(is_trusted(url), "{url}");
    }
    for url in [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/keys",
        "http://127.0.0.1@evil.example/",
        "http://127.0.0.1:80@evil.example/",
        "http://localhost.evil.example/",
        "http://169.254.170.2.evil.example/",
        "http://[fd00:ec2::24]/",
        "http://",
        "ftp://127.0.0.1/",
        "127.0.0.1/keys",
        "HTTPS:/evil",
        "",
    ] {
        assert!(!is_trusted(url), "{url}");
    }
}
