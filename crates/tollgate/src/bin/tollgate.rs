//! The program `tollgate`.
//!
//! Not here: what it does (the library), the demo, which is a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::run(None)
}
