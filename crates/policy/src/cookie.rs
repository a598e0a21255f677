//! Cookies: the one of a name among those that a request brings, and how one is set.
//!
//! Invariant: a cookie that stands twice is an error, never a choice.
//! Not here: what a cookie holds (`identity`), which are read (`login`).

use crate::secret::Secret;

/// A cookie of this name came twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

/// The value of the cookie of this name, of the lines of a request's `cookie` headers.
///
/// # Errors
/// [`Repeated`].
pub fn find<'h>(
    lines: impl IntoIterator<Item = &'h [u8]>,
    name: &str,
) -> Result<Option<&'h [u8]>, Repeated> {
    let lines = lines.into_iter();
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let rest = pair.trim_ascii().strip_prefix(name.as_bytes())?;
        rest.strip_prefix(b"=")
    });
    let value = values.next();
    if values.next().is_some() {
        return Err(Repeated);
    }
    Ok(value)
}

/// A `set-cookie` value: for this host and all of its paths, out of reach of scripts, and not sent with what other sites
/// have a browser send, but for links. A life of zero removes the cookie.
#[must_use]
pub fn set(name: &str, value: &Secret, life_s: u64, is_secure: bool) -> Secret {
    let secure = if is_secure { "; Secure" } else { "" };
    let attributes = format!("; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}");
    let parts = [name.as_bytes(), b"=", value.expose(), attributes.as_bytes()];
    Secret::new(parts.concat())
}

/// The `set-cookie` value that removes a cookie.
#[must_use]
pub fn removed(name: &str, is_secure: bool) -> Secret {
    set(name, &Secret::new(Vec::new()), 0, is_secure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[&'static str], name: &str) -> Result<Option<&'static str>, Repeated> {
        let lines = lines.iter().map(|line| line.as_bytes());
        let value = find(lines, name)?;
        Ok(value.map(|value| std::str::from_utf8(value).expect("text")))
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name_among_all_lines() {
        for (lines, value) in [
            (&["tollgate=a"][..], Some("a")),
            (&["x=y; tollgate=a=b; z"], Some("a=b")),
            (&["x=y", "tollgate="], Some("")),
            (&[";;  tollgate=a ;"], Some("a")),
            (
                &["Tollgate=a; tollgate2=b; atollgate=c; tollgate; =tollgate"],
                None,
            ),
            (&["tollgate =a"], None),
            (&[], None),
        ] {
            assert_eq!(found(lines, "tollgate"), Ok(value), "{lines:?}");
        }
    }

    #[test]
    fn a_cookie_that_stands_twice_is_none() {
        for lines in [
            &["tollgate=a; tollgate=a"][..],
            &["tollgate=a", "tollgate=b"],
        ] {
            assert_eq!(found(lines, "tollgate"), Err(Repeated), "{lines:?}");
        }
    }

    #[test]
    fn a_cookie_is_for_its_host_alone() {
        let value = Secret::new(b"v".to_vec());
        let set = set("__Host-tollgate", &value, 60, true);
        let text = "__Host-tollgate=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(set.expose(), text.as_bytes());
        let gone = "tollgate=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax";
        assert_eq!(removed("tollgate", false).expose(), gone.as_bytes());
    }
}
