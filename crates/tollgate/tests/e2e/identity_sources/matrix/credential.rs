//! Credentials of every kind, good and bad, and whose they are.
//!
//! Not here: where they are put (`attempt`).

use serde_json::{Value, json};

use super::super::issuer::{claims, now, signed};

/// The issuer of which sources know the same keys as of the first.
pub(super) const OTHER_ISSUER: &str = "https://other.test/";

/// What a credential is by its form, which says which sources take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It begins as the gate's own keys do.
    Key,
    /// A token of the first issuer, good or bad.
    Token,
    /// A token of the other issuer.
    OtherToken,
    /// In the form of a token, without an issuer that could be read.
    Broken,
    /// None of these.
    Opaque,
}

/// A credential, and whose it is.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) text: String,
    pub(super) kind: Kind,
    /// Whose it is for the source that takes its kind.
    pub(super) workload: Option<&'static str>,
    /// Whose it is for whoever is asked about tokens.
    pub(super) introspected: Option<&'static str>,
}

/// Keys and tokens of both workloads and of one that has no route, and what is nobody's; and the file of the keys.
pub(super) fn credentials() -> (Vec<Credential>, String) {
    let of = |text: String, kind, workload| Credential {
        text,
        kind,
        workload,
        introspected: None,
    };
    let (mut all, mut file) = (Vec::new(), String::new());
    for workload in ["chat", "ci", "stranger"] {
        let key = identity::keys::NewKey::make().expect("chance");
        let (id, hash) = (&key.id, &key.hash);
        file += &json!({ "id": id, "sha256": hash.to_string(), "workload": workload, "created_unix_s": 1 })
            .to_string();
        file.push('\n');
        let text = String::from_utf8(key.key.expose().to_vec()).expect("text");
        all.push(of(text, Kind::Key, Some(workload)));
    }
    let token = |issuer: &str, azp: &str, kid: &str| {
        let mut claims = claims();
        claims["iss"] = Value::from(issuer);
        claims["azp"] = Value::from(azp);
        // Longer than any run.
        claims["exp"] = json!(now() + 86_400);
        signed(&claims, kid)
    };
    let ours = "https://issuer.test/";
    let key = all[0].text.clone();
    let good = token(ours, "chat", "p256");
    all.extend([
        of(key[..key.len() - 1].to_owned(), Kind::Key, None),
        of(format!("{key}0"), Kind::Key, None),
        of(format!("tgk_{}", key[4..].to_uppercase()), Kind::Key, None),
        of(key.to_uppercase(), Kind::Opaque, None),
        of(key.replace("tgk_", "tgx_"), Kind::Opaque, None),
        of(token(ours, "ci", "rsa"), Kind::Token, Some("ci")),
        of(
            token(ours, "stranger", "rsa"),
            Kind::Token,
            Some("stranger"),
        ),
        of(good[..good.len() - 2].to_owned(), Kind::Token, None),
        of(token(ours, "chat", "ed25519"), Kind::Token, None),
        of(token(OTHER_ISSUER, "ci", "ed25519"), Kind::OtherToken, None),
        of(good.replacen("ey", "eyA", 1), Kind::Broken, None),
        of(good.replacen('.', "..", 1), Kind::Opaque, None),
        of(good, Kind::Token, Some("chat")),
        of("sk-0123456789".to_owned(), Kind::Opaque, None),
        of("null".to_owned(), Kind::Opaque, None),
        of("chat".to_owned(), Kind::Opaque, None),
    ]);
    let asked = |text: String, kind, workload, introspected| Credential {
        introspected: Some(introspected),
        ..of(text, kind, workload)
    };
    let other = token(OTHER_ISSUER, "chat", "p256");
    all.extend([
        asked("opaque-1".to_owned(), Kind::Opaque, None, "chat"),
        asked("opaque-2".to_owned(), Kind::Opaque, None, "ci"),
        asked("opaque-3".to_owned(), Kind::Opaque, None, "stranger"),
        // The two sources that take it disagree: the first decides.
        asked(other, Kind::OtherToken, Some("chat"), "ci"),
    ]);
    (all, file)
}
