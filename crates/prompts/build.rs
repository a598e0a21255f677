//! Writes classes of characters in the form in which `python_text` reads them: as they lie in the program's file.
//!
//! They are those of `regex-syntax`, whose tables are Unicode's.

use std::env;
use std::fs;
use std::path::PathBuf;

use regex_syntax::hir::{Class, HirKind};

#[expect(
    clippy::disallowed_methods,
    reason = "a build script is told by the environment where to write"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where"));
    let write = |name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).expect("cargo's directory can be written");
    };
    write("unprintable.ranges", &ranges(r"[[\p{C}\p{Z}]--[ ]]"));
    write("decimal.ranges", &ranges(r"\p{Nd}"));
}

/// The characters of a class as pairs of first and last.
fn ranges(pattern: &str) -> Vec<u8> {
    let parsed = regex_syntax::parse(pattern).expect("a pattern");
    let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
        panic!("{pattern} is no class");
    };
    let mut bytes = Vec::new();
    for range in class.ranges() {
        bytes.extend(u32::from(range.start()).to_le_bytes());
        bytes.extend(u32::from(range.end()).to_le_bytes());
    }
    bytes
}
