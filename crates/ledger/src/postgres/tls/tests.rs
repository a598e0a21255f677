//! What a connection string says of TLS, in both forms.

use super::{Mode, Security, read};

fn of(server: &str) -> (String, Security) {
    read(server).unwrap_or_else(|error| panic!("{server}: {error}"))
}

#[test]
fn a_mode_is_read_in_both_forms_and_the_rest_is_left_as_it_is() {
    let ca = Some("/etc/my ca.pem".to_owned());
    let cases = [
        (
            "postgres://gate@db/usage",
            "postgres://gate@db/usage",
            Mode::Prefer,
            None,
        ),
        (
            "postgres://gate@db/usage?sslmode=disable",
            "postgres://gate@db/usage",
            Mode::Disable,
            None,
        ),
        (
            "postgresql://gate:p%40@db/usage?connect_timeout=3&sslmode=require&options=-c%20a%3Db",
            "postgresql://gate:p%40@db/usage?connect_timeout=3&options=-c%20a%3Db",
            Mode::Require,
            None,
        ),
        (
            "postgres://gate@db/usage?sslrootcert=/etc/my%20ca.pem&sslmode=verify-full",
            "postgres://gate@db/usage",
            Mode::VerifyFull,
            ca.clone(),
        ),
        (
            "postgres://gate@db/usage?sslmode=verify-full&sslrootcert=system",
            "postgres://gate@db/usage",
            Mode::VerifyFull,
            None,
        ),
        // With roots to trust, `require` is `verify-ca`, as libpq has it.
        (
            "postgres://gate@db/usage?sslmode=require&sslrootcert=/etc/my%20ca.pem",
            "postgres://gate@db/usage",
            Mode::VerifyCa,
            ca.clone(),
        ),
        ("host=db user=gate", "host=db user=gate", Mode::Prefer, None),
        (
            r"host=db sslmode = verify-ca password='a b=\' sslmode=disable' sslrootcert='/etc/my ca.pem' user=gate",
            r"host=db password='a b=\' sslmode=disable' user=gate",
            Mode::VerifyCa,
            ca,
        ),
    ];
    for (server, rest, mode, roots) in cases {
        assert_eq!(
            of(server),
            (rest.to_owned(), Security { mode, roots }),
            "{server}"
        );
    }
}

#[test]
fn what_would_be_less_than_was_asked_for_is_refused() {
    for server in [
        "postgres://gate@db/usage?sslmode=verify-ca",
        "postgres://gate@db/usage?sslmode=verify_full",
        "postgres://gate@db/usage?sslmode=",
        "postgres://gate@db/usage?sslmode=require&sslrootcert=system",
        "postgres://gate@db/usage?sslmode=%zz",
        "host=db sslmode='verify-full",
        "host=db sslmode",
    ] {
        assert!(read(server).is_err(), "{server}");
    }
    let missing = of("postgres://gate@db/usage?sslmode=verify-full&sslrootcert=/no/such/file");
    let refused = missing.1.apply(&mut postgres::Config::new());
    let says = refused.err().expect("there is no such file").to_string();
    assert!(says.contains("/no/such/file"), "{says}");
}
