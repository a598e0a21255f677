//! Targets as people give them: with or without the version, with or without the path.
//!
//! Not here: URLs in general (`load::client::Target`).

use load::client::{Target, TargetError};

/// What is asked of a base URL.
pub(crate) const PATH: &str = "/chat/completions";
/// The version, where the URL has no path at all.
const VERSION: &str = "/v1";

/// Reads `http://HOST:PORT`, `…/v1` or `…/v1/chat/completions`; all are the same.
pub(crate) fn parse(url: &str) -> Result<Target, TargetError> {
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix(PATH).unwrap_or(base);
    let target = Target::parse(base)?;
    if target.prefix().is_empty() {
        return Target::parse(&format!("{base}{VERSION}"));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    //! The same target in all its forms.

    use super::parse;

    #[test]
    fn a_target_is_the_same_with_and_without_version_and_path() {
        for url in [
            "http://127.0.0.1:1975",
            "http://127.0.0.1:1975/",
            "http://127.0.0.1:1975/v1",
            "http://127.0.0.1:1975/v1/",
            "http://127.0.0.1:1975/v1/chat/completions",
        ] {
            let target = parse(url).expect(url);
            assert_eq!(target.prefix(), "/v1", "{url}");
            assert_eq!(target.authority(), "127.0.0.1:1975", "{url}");
        }
        let own = parse("http://127.0.0.1:1975/v1beta/openai").expect("a base of its own");
        assert_eq!(own.prefix(), "/v1beta/openai");
        parse("127.0.0.1:1975").expect_err("no scheme");
    }
}
