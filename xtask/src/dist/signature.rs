//! A signature over the sums, by a key that the environment names, as `cosign verify-blob --key` and openssl verify it:
//! ECDSA over SHA-256, in base64.
//!
//! Invariant: what is signed are sums of the packages that lie beside them; what was signed has been verified with the key's public
//! half; no program runs beside the key but cargo, sha256sum and openssl.
//! Not here: who is to be believed. The public half lies beside the signature for convenience: a reader takes it from elsewhere.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Plan, SUMS, check_sums, files, write};

/// Names a file with a private key in PEM, or is such a key.
pub(super) const KEY: &str = "TOLLGATE_SIGNING_KEY";
const SIGNATURE: &str = "SHA256SUMS.sig";
/// The public half, in PEM.
const PUBLIC: &str = "tollgate.pub";
/// What signing adds to a directory.
pub(super) const FILES: [&str; 2] = [SIGNATURE, PUBLIC];

/// Refuses to do anything but sign where there is a key.
pub(super) fn refuse_key(plan: &Plan, key: Option<&OsStr>) -> Result<(), String> {
    match (plan, key) {
        (Plan::Sign, _) | (_, None) => Ok(()),
        (_, Some(key)) if key.is_empty() => Ok(()),
        (_, Some(_)) => Err(format!(
            "{KEY} is set, and every program that runs here would see the key: unset it; `cargo xtask dist sign` signs what was packaged"
        )),
    }
}

/// Signs the sums of a directory, and says what it did.
pub(super) fn sign(dir: &Path) -> Result<String, String> {
    let key = std::env::var(KEY).unwrap_or_default();
    if key.is_empty() {
        return Err(format!(
            "not signed: {KEY} names no key: set it to a private key of P-256 in PEM, or to the path of one"
        ));
    }
    check_sums(dir)?;
    let key = if key.starts_with("-----BEGIN") {
        key
    } else {
        std::fs::read_to_string(&key).map_err(|cause| format!("{KEY}: {key}: {cause}"))?
    };
    sign_with(dir, &key)?;
    Ok(format!(
        "signed: {SIGNATURE}, of the key whose public half is {PUBLIC}"
    ))
}

/// openssl reads the key from a pipe; it is in no file of ours and on no command line.
fn sign_with(dir: &Path, key: &str) -> Result<(), String> {
    let public = openssl(dir, &["pkey", "-pubout"], key.as_bytes())?;
    let text = openssl(dir, &["pkey", "-pubin", "-noout", "-text"], &public)?;
    if !String::from_utf8_lossy(&text).contains("NIST CURVE: P-256") {
        return Err(format!(
            "{KEY}: no key of P-256, which cosign signs with: openssl ecparam -name prime256v1 -genkey -noout"
        ));
    }
    write(&dir.join(PUBLIC), &String::from_utf8_lossy(&public))?;
    let signed = openssl(
        dir,
        &["dgst", "-sha256", "-sign", "/dev/stdin", SUMS],
        key.as_bytes(),
    )?;
    let text = openssl(dir, &["base64", "-A"], &signed)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    write(&dir.join(SIGNATURE), &text)?;
    verify(dir)
}

/// Holds the signature of a directory's sums against its public key.
pub(super) fn verify(dir: &Path) -> Result<(), String> {
    let text =
        std::fs::read(dir.join(SIGNATURE)).map_err(|cause| format!("{SIGNATURE}: {cause}"))?;
    let raw = openssl(dir, &["base64", "-A", "-d"], &text)?;
    let words = [
        "dgst",
        "-sha256",
        "-verify",
        PUBLIC,
        "-signature",
        "/dev/stdin",
        SUMS,
    ];
    openssl(dir, &words, &raw).map(drop)
}

/// Whether the sums of a directory were signed.
pub(super) fn is_signed(dir: &Path) -> bool {
    files(dir).is_ok_and(|names| names.iter().any(|name| name == SIGNATURE))
}

/// Runs openssl in a directory on what it reads from its input, and gives what it wrote.
fn openssl(dir: &Path, words: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
    let mut command = Command::new("openssl");
    command
        .args(words)
        .current_dir(dir)
        .env_remove(KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|cause| format!("openssl did not start: {cause}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that refuses its input says why itself.
        drop(stdin.write_all(input));
    }
    let output = child
        .wait_with_output()
        .map_err(|cause| format!("openssl: {cause}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let says = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "openssl {} failed: {}",
        words.join(" "),
        says.trim()
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Command, OsStr, is_signed, openssl, refuse_key, sign_with, verify};
    use crate::dist::{Plan, SUMS, sums};
    use testing::skip;

    #[test]
    fn nothing_but_signing_runs_beside_the_key() {
        let key = Some(OsStr::new("key.pem"));
        assert_eq!(refuse_key(&Plan::Sign, key), Ok(()));
        for words in [&[][..], &["--twice"], &["try"], &["setup"], &["tag", "v1"]] {
            let plan = Plan::of(words).expect("a plan");
            let says = refuse_key(&plan, key).expect_err("they would see it");
            assert!(says.contains("dist sign"), "{says}");
            assert_eq!(refuse_key(&plan, Some(OsStr::new(""))), Ok(()));
            assert_eq!(refuse_key(&plan, None), Ok(()));
        }
    }

    #[test]
    fn sums_are_signed_and_a_changed_sum_is_found() {
        if Command::new("openssl").arg("version").output().is_err() {
            skip("openssl is not installed (apt-get install openssl)");
            return;
        }
        let dir = std::env::temp_dir().join(format!("tollgate-signature-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("package"), "bytes").expect("a file");
        sums(&dir).expect("sums");
        assert!(!is_signed(&dir));
        let key = |curve| {
            let words = ["ecparam", "-name", curve, "-genkey", "-noout"];
            let key = openssl(&dir, &words, b"").expect("openssl makes keys");
            String::from_utf8(key).expect("PEM is text")
        };
        let other = sign_with(&dir, &key("secp384r1")).expect_err("cosign has no use for it");
        assert!(other.contains("no key of P-256"), "{other}");
        let none = sign_with(&dir, "no key").expect_err("it is none");
        assert!(none.contains("openssl pkey -pubout failed"), "{none}");
        sign_with(&dir, &key("prime256v1")).expect("it signs");
        assert!(is_signed(&dir));
        verify(&dir).expect("and is good");
        let text = fs::read_to_string(dir.join(SUMS)).expect("the sums");
        fs::write(dir.join(SUMS), text.replace("package", "another")).expect("a change");
        verify(&dir).expect_err("the change is found");
        fs::remove_dir_all(&dir).expect("removed");
    }
}
