//! What is wrong with a document, where, and what would be right.
//!
//! Invariant: a fault quotes the document as written (never what a variable or a file held), and
//! neither what stands where a secret is named nor what looks like a key (`mask`).
//! Not here: finding the faults.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong, or (as a warning) suspicious.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file that it is in, where the document is made of several.
    pub file: Option<PathBuf>,
    /// Where in the document: `routes[1].limits[0].per`; empty for the document as a whole.
    pub path: String,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub says: String,
    /// What would be right.
    pub hint: String,
}

/// Everything wrong with one document; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// The document.
    pub file: PathBuf,
    /// In the order of the lines.
    pub faults: Vec<Fault>,
    /// What would be allowed and is probably not meant, as far as the faults let it be seen.
    pub warnings: Vec<Fault>,
    /// Every file that was consulted, so that a repair of any of them can be noticed.
    pub watched: Vec<PathBuf>,
    /// Files of keys that the document names, as far as the faults let it be seen: keys can be revoked all the same.
    pub key_files: Vec<PathBuf>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.says)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(
                f,
                "{}",
                Located {
                    file: &self.file,
                    fault
                }
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A fault with its file and line in front, as compilers print them.
#[derive(Debug, Clone, Copy)]
pub struct Located<'a> {
    /// The document, where the fault names no file of its own.
    pub file: &'a std::path::Path,
    /// The fault.
    pub fault: &'a Fault,
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.fault.file.as_deref().unwrap_or(self.file);
        write!(f, "{}:", file.display())?;
        if let Some(line) = self.fault.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.fault)
    }
}
