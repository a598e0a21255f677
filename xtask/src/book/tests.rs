//! What mdBook says, and how pages are laid out for it.

use super::is_warning;
use super::layout::{chapters, with_indices};

#[test]
fn whatever_is_no_word_of_progress_is_a_warning() {
    assert!(!is_warning(" INFO Book building has started"));
    assert!(!is_warning(""));
    assert!(is_warning(" WARN unclosed HTML tag `<li>` found in `a.md`"));
    assert!(is_warning("ERROR x"));
    assert!(is_warning("Warning: y"));
}

#[test]
fn links_to_readmes_lead_to_indices() {
    let page = "[a](README.md#b) [c](../deploy/README.md) `[d](README.md)` [e](x.md) [f](https://example.com/README.md)\n";
    let laid_out = "[a](index.md#b) [c](../deploy/index.md) `[d](README.md)` [e](x.md) [f](https://example.com/README.md)\n";
    assert_eq!(with_indices(page), laid_out);
}

#[test]
fn chapters_are_named_from_the_root() {
    let summary = "[All](../README.md)\n- [A](a.md)\n  - [B](../deploy/README.md)\n";
    let root = "[All](index.md)\n- [A](docs/a.md)\n  - [B](deploy/index.md)\n";
    assert_eq!(chapters(summary), root);
}
