//! Tables of what is shown and what is not.

use super::{looks_like_key, masked, quoted};

#[test]
fn keys_are_told_from_names_by_their_looks() {
    for key in [
        "sk-a",
        "sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFy",
        "x: SK-abc",
        "ghp_abc",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "3f2b8c1e-77aa-4c1d-9e0b-0a1b2c3d4e5f",
        "eyJhbGciOi.J9.x",
        "Bearer hunter2",
        "postgres://gate:hunter2@db/usage",
        "aaaaaaaaaaaaaaaaaaaaaaaaa",
        "Zm9-vYm_FyY+mF6=cXV-4Zm9-vYm",
        "-----BEGIN EC PRIVATE KEY-----",
    ] {
        assert!(looks_like_key(key), "{key}");
        assert_eq!(quoted(key), "\"***\"");
    }
    for name in [
        "",
        "sk-",
        "task-runner",
        "gpt-oss-120b",
        "gemini-2.5-flash",
        "meta-llama/Llama-3.1-8B-Instruct",
        "Qwen/Qwen2.5-VL-72B-Instruct-AWQ",
        "claude-sonnet-4-5-20250929",
        "mistralai/Mixtral-8x22B-Instruct-v0.1",
        "swe-rebench-ide",
        "batch-eu-west-1a-h100",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "http://[fd00::2]:8000/v1",
        "/var/run/secrets/tollgate/openai",
        "tls/internal-ca.pem",
        "99999999999999999999999",
        "1 fortnight",
        "32MiB",
        "POST /v1/audio/transcriptions",
        "OPENAI_API_KEY",
        "X-Goog-API-Key",
    ] {
        assert!(!looks_like_key(name), "{name}");
        assert_eq!(quoted(name), format!("{name:?}"));
    }
}

#[test]
fn a_message_loses_the_words_that_look_like_keys_and_no_others() {
    for (message, shown) in [
        (
            "the backends are a, sk-abc, b",
            "the backends are a, ***, b",
        ),
        ("did you mean ./sk-abc?", "did you mean ./***?"),
        (
            "write one word such as Bearer, or \"\" for none",
            "write one word such as Bearer, or \"\" for none",
        ),
        (
            "set OPENAI_API_KEY, or write ${OPENAI_API_KEY:-default}",
            "set OPENAI_API_KEY, or write ${OPENAI_API_KEY:-default}",
        ),
    ] {
        assert_eq!(masked(message), shown);
    }
}
