//! The arguments of a call, as conditions of filters look at them.
//!
//! Invariant: what a condition sees of an argument is what the server sees: arguments in which a name stands twice, or in two spellings, are none.
//! They are read where a condition looks at them, once, and no further than to a bound.
//! Not here: conditions ([`policy::authority`]), when they are asked (the host).

use policy::authority::{Claim, Members};

use crate::tree::Tree;

/// Most bytes of arguments that are read.
pub const BYTES_MAX: usize = 64 << 10;
/// Most values in them.
pub const VALUES_MAX: usize = 4_096;
/// Up to here every whole number has a float of its own.
const EXACT_TO: f64 = 9_007_199_254_740_992.0;

/// Why arguments are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// They are larger than what is read.
    #[error(
        "the arguments have more than 64 KiB or {VALUES_MAX} values, and conditions look at no more"
    )]
    TooLarge,
    /// They are no object.
    #[error("the arguments are no object")]
    NoObject,
    /// A name stands twice in an object.
    #[error("a name stands twice in the arguments, or in two spellings")]
    Twice,
    /// A name has a letter that some readers take for another one.
    #[error("a name in the arguments has a letter that some readers take for `i`, `k` or `s`")]
    Lookalike,
}

/// Reads arguments as they are written.
///
/// # Errors
/// [`Unread`].
pub fn read(arguments: &[u8]) -> Result<Members, Unread> {
    if arguments.len() > BYTES_MAX {
        return Err(Unread::TooLarge);
    }
    match Tree::read(arguments, VALUES_MAX) {
        Some(Tree::Map(members)) => of(members),
        Some(_) => Err(Unread::NoObject),
        // The message was read before: it is JSON.
        None => Err(Unread::TooLarge),
    }
}

fn of(members: Vec<(String, Tree)>) -> Result<Members, Unread> {
    if members.iter().any(|(name, _)| name.contains(LOOKALIKES)) {
        return Err(Unread::Lookalike);
    }
    let mut names: Vec<String> = members.iter().map(|(name, _)| folded(name)).collect();
    names.sort_unstable();
    if names
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a == b))
    {
        return Err(Unread::Twice);
    }
    let members = members
        .into_iter()
        .map(|(name, value)| Ok((name.into(), claim(value)?)));
    Ok(Members::new(members.collect::<Result<_, _>>()?))
}

/// What Unicode's folding, or Java's comparison without case, equates with a letter of ASCII: a condition on `user` must not be passed by
/// a member that its server takes for `user`.
const LOOKALIKES: [char; 4] = ['\u{17f}', '\u{212a}', '\u{130}', '\u{131}'];

/// A name without the case of its letters.
fn folded(name: &str) -> String {
    let upper = name.chars().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).collect()
}

fn claim(of_tree: Tree) -> Result<Claim, Unread> {
    Ok(match of_tree {
        Tree::Null => Claim::Null,
        Tree::Bool(value) => Claim::Bool(value),
        Tree::Int(value) => Claim::Int(value),
        Tree::Large(value) => Claim::Large(value),
        Tree::Float(value) if value.abs() < EXACT_TO => Claim::Float(value),
        Tree::Float(_) => Claim::Inexact,
        Tree::Text(text) => Claim::Text(text.into()),
        Tree::List(list) => {
            let list = list.into_iter().map(claim);
            Claim::List(list.collect::<Result<_, _>>()?)
        }
        Tree::Map(members) => Claim::Map(of(members)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_what_they_say_and_none_where_readers_differ() {
        let members = read(br#"{"path":"/a","n":[1,2.5,1e300],"at":{"x":null}}"#).expect("members");
        assert_eq!(members.get("path"), Some(&Claim::Text("/a".into())));
        let list = vec![Claim::Int(1), Claim::Float(2.5), Claim::Inexact];
        assert_eq!(members.get("n"), Some(&Claim::List(list)));
        for (text, unread) in [
            (&br#"{"a":1,"a":2}"#[..], Unread::Twice),
            (br#"{"path":1,"Path":2}"#, Unread::Twice),
            (br#"{"a":[{"b":1,"B":2}]}"#, Unread::Twice),
            ("{\"σ\":1,\"ς\":2}".as_bytes(), Unread::Twice),
            (
                "{\"user\":1,\"u\u{17f}er\":2}".as_bytes(),
                Unread::Lookalike,
            ),
            (br#"{"a":{"is_adm\u0131n":true}}"#, Unread::Lookalike),
            (b"[1]", Unread::NoObject),
            (b"null", Unread::NoObject),
        ] {
            assert_eq!(read(text), Err(unread));
        }
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(BYTES_MAX));
        assert_eq!(read(long.as_bytes()), Err(Unread::TooLarge));
        let many = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(VALUES_MAX));
        assert_eq!(read(many.as_bytes()), Err(Unread::TooLarge));
        assert!(read(b"{}").expect("none").is_empty());
    }
}
