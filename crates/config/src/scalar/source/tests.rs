//! What may be repeated in a message, and what may be a secret.

use super::is_path;

#[test]
fn paths_are_told_from_keys_in_their_place() {
    for path in [
        "secrets/gemini-api-key",
        "/var/run/secrets/tollgate/openai",
        "${SECRETS}/key.txt",
        "keys/v1beta2.key",
        "/etc/tollgate/KEY",
        "absent.key",
        "tls-2026_a.internal.pem",
        "ca.crt",
        "token.txt",
    ] {
        assert!(is_path(path), "{path}");
    }
    for key in [
        "sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFy",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "3f2b8c1e-77aa-4c1d-9e0b-0a1b2c3d4e5f/x",
        "AIzaSyD.4x9Q",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90.",
        "hunter2",
        "hunter.2026",
        ".key",
        "hunter two.key",
        "hunTer/two",
        "hunTer.key",
        "postgres://db/usage.key",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90.key",
        "postgres://gate:hunter@db/usage",
    ] {
        assert!(!is_path(key), "{key}");
    }
}
