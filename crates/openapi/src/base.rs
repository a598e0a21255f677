//! Where an API is, by its description.
//!
//! Invariant: a description that was fetched leads to no other host than the one that it came from: what is sent there carries a
//! credential.
//! Not here: addresses that the configuration gives (`config`).

use serde_json::Value;

use crate::document::{Description, Fault};

/// The first server of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A whole address.
    Whole(String),
    /// One that follows from where the description is.
    Relative(String),
}

impl Description {
    /// Where its API is, with the usual value of each variable.
    ///
    /// # Errors
    /// A variable has none.
    pub fn server(&self) -> Result<Server, Fault> {
        let servers = self.root.get("servers").and_then(Value::as_array);
        let Some(first) = servers.and_then(|servers| servers.first()) else {
            return Ok(Server::Relative("/".into()));
        };
        let url = first.get("url").and_then(Value::as_str).unwrap_or("/");
        let (mut out, mut rest) = (String::new(), url);
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            let variable = first.get("variables").and_then(|all| all.get(name));
            let usual = variable.and_then(|of| of.get("default"));
            let usual = match usual {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => {
                    let says = format!(
                        "its server {url} has the variable {name}, which has no default: write `base`"
                    );
                    return Err(Fault::Base(says));
                }
            };
            out.push_str(before);
            out.push_str(&usual);
            rest = after;
        }
        out.push_str(rest);
        Ok(match out.contains("://") {
            true => Server::Whole(out),
            false => Server::Relative(out),
        })
    }
}

/// The path of a fetched description's API, without a slash at its end: its server stands where it came from.
///
/// # Errors
/// It stands elsewhere.
pub fn resolved(server: &Server, came_from: &str) -> Result<String, Fault> {
    let split = |url: &str| {
        let (scheme, rest) = url.split_once("://")?;
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(at)?;
        let scheme = scheme.to_ascii_lowercase();
        let own = if scheme == "https" { ":443" } else { ":80" };
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(own).unwrap_or(&authority).to_owned();
        Some((format!("{scheme}://{authority}"), path.to_owned()))
    };
    let odd = |url: &str| Fault::Base(format!("its server {url} is no address: write `base`"));
    let (origin, directory) = split(came_from).ok_or_else(|| odd(came_from))?;
    let path = match server {
        Server::Whole(url) => {
            let (theirs, path) = split(url).ok_or_else(|| odd(url))?;
            if theirs != origin {
                let says = format!(
                    "its server is {theirs}, and it came from {origin}: write `base` where that is meant"
                );
                return Err(Fault::Base(says));
            }
            path
        }
        Server::Relative(path) if path.starts_with('/') => path.clone(),
        Server::Relative(path) => {
            let directory = directory.split(['?', '#']).next().unwrap_or_default();
            let until = directory.rfind('/').map_or(0, |slash| slash + 1);
            let directory = directory.get(..until).unwrap_or("/");
            format!("{directory}{}", path.trim_start_matches("./"))
        }
    };
    let is_fine = |b: u8| b.is_ascii_graphic() && !b"?#\\".contains(&b);
    let mut parts = path.split('/');
    if !path.bytes().all(is_fine)
        || parts.any(|part| matches!(part, "." | ".."))
        || path.starts_with("//")
    {
        return Err(odd(&path));
    }
    Ok(path.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    //! Where APIs are.

    use super::{Server, resolved};

    #[test]
    fn a_server_stands_where_its_description_came_from_or_is_refused() {
        let from = "https://api.example.com/docs/openapi.json?x=/y";
        let whole = |url: &str| resolved(&Server::Whole(url.into()), from);
        let relative = |path: &str| resolved(&Server::Relative(path.into()), from);
        assert_eq!(whole("https://api.example.com/v1/"), Ok("/v1".into()));
        assert_eq!(whole("HTTPS://API.example.com:443"), Ok(String::new()));
        assert_eq!(relative("/"), Ok(String::new()));
        assert_eq!(relative("/v2"), Ok("/v2".into()));
        assert_eq!(relative("v2"), Ok("/docs/v2".into()));
        for url in [
            "https://evil.example/v1",
            "http://api.example.com/v1",
            "https://api.example.com:8443",
            "https://api.example.com@evil.example/",
            "https://api.example.com/a/../b",
        ] {
            assert!(whole(url).is_err(), "{url}");
        }
        for path in ["../x", "//evil.example/v1", "/a b", "/a?b"] {
            assert!(relative(path).is_err(), "{path}");
        }
    }
}
