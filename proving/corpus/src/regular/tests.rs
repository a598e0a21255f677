//! Opening ends at once, whatever lies at the path.

use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::open;

/// A pipe that nobody writes to.
pub(crate) fn pipe_at(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_file_is_opened_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
    std::fs::write(&file, "x").unwrap();
    pipe_at(&pipe);
    assert!(open(&file).is_ok());
    for path in [dir.path(), Path::new("/dev/zero"), &pipe] {
        let error = open(path).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::InvalidInput,
            "{}",
            path.display()
        );
    }
}
