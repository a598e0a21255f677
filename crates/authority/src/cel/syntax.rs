//! Text to a tree, by the crate `cel`'s grammar, with the bounds that it needs.
//!
//! Macros are left as the calls they are written as: `check` makes loops of them.

use cel::common::ast::SourceInfo;
use cel::parser::Expression;

use super::{DEPTH_MAX, EXPRESSION_BYTES_MAX, outline};

/// An expression and where its parts stand.
pub(super) struct Tree {
    pub(super) root: Expression,
    source: SourceInfo,
}

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Tree, String> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(format!(
            "is {} bytes long; at most {EXPRESSION_BYTES_MAX}",
            text.len()
        ));
    }
    if text.trim().is_empty() {
        return Err("is empty; write true to mean always".to_owned());
    }
    if let Some(says) = outline::fault(text) {
        return Err(says);
    }
    let most = u16::try_from(DEPTH_MAX).unwrap_or(u16::MAX);
    let parser = cel::Env::default()
        .with_optional_support(false)
        .parser()
        .max_recursion_depth(most);
    match parser.parse_with_source_info(text) {
        Ok((root, source)) => Ok(Tree { root, source }),
        Err(errors) => Err(first(&errors)),
    }
}

fn first(errors: &cel::ParseErrors) -> String {
    match errors.errors.first() {
        Some(error) => {
            let says = match error.msg.split_once("token recognition error at: '") {
                Some((_, at)) if at.starts_with('=') => {
                    "= is no operator here; == compares".to_owned()
                }
                Some((_, at)) => {
                    let at = at.trim_end_matches('\'').trim_end();
                    format!("{at:?} is nothing that an expression has")
                }
                None => error.msg.clone(),
            };
            format!("line {}, column {}: {says}", error.pos.0, error.pos.1)
        }
        None => "is no expression".to_owned(),
    }
}

impl Tree {
    /// Where a part of it begins, for a fault.
    pub(super) fn place(&self, id: u64) -> String {
        let (start, _) = self.source.offset_for(id).unwrap_or_default();
        let before = self.source.source.chars().take(start as usize);
        let (mut line, mut column) = (1, 1);
        for c in before {
            (line, column) = if c == '\n' {
                (line + 1, 1)
            } else {
                (line, column + 1)
            };
        }
        format!("line {line}, column {column}")
    }
}
