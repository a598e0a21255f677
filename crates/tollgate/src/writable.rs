//! Whether what the gate writes can be written, asked before it is opened.
//!
//! Invariant: nothing is made or changed, so that `check` may ask on a machine where a gate runs.
//! Not here: what is written (`ledger`, `telemetry`), whether a disk has room (`host`).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use config::{AccessLog, Fault, Host};
use rustix::fs::{Access, AtFlags, CWD, accessat};

/// A fault for each file of the configuration that could not be written.
pub(crate) fn faults(host: &Host) -> Vec<Fault> {
    let ledger = host.ledger.as_ref().map(|ledger| {
        // SQLite keeps its log and its index beside the file.
        let hint =
            "the ledger keeps several files there, and needs a directory that the gate may write";
        ("ledger.path", host.lines.ledger, &ledger.path, hint)
    });
    let log = match &host.access_log {
        AccessLog::File(path) => Some((
            "access_log",
            host.lines.access_log,
            path,
            "make the directory and let the gate write there, or name another file",
        )),
        AccessLog::Off | AccessLog::Stdout => None,
    };
    let fault = |(setting, line, file, hint): (&str, Option<usize>, &PathBuf, &str)| {
        let said = writable(file).map_err(|says| (says, hint));
        let said = said.and_then(|()| of_a_kind(file, setting == "ledger.path"));
        said.err().map(|(says, hint)| Fault {
            file: None,
            path: setting.to_owned(),
            line,
            says,
            hint: hint.to_owned(),
        })
    };
    ledger.into_iter().chain(log).filter_map(fault).collect()
}

/// What every database of SQLite begins with (<https://www.sqlite.org/fileformat.html>, 1.3).
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Whether what is there already is of the kind that will be written.
fn of_a_kind(file: &Path, is_ledger: bool) -> Result<(), (String, &'static str)> {
    let Ok(found) = std::fs::metadata(file) else {
        return Ok(());
    };
    let (kind, shown) = (found.file_type(), file.display());
    if is_ledger {
        if !found.is_file() {
            return Err((format!("{shown} is no file"), "name another file"));
        }
        let mut begins = [0; DATABASE.len()];
        // One that may not be read is the gate's to say.
        let read = File::open(file).and_then(|mut file| file.read_exact(&mut begins));
        let is_another = match read {
            Ok(()) => begins != DATABASE,
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof && found.len() > 0,
        };
        // One whose beginning is damaged has its head beside it, and the ledger says what to do with it.
        let mut head = file.as_os_str().to_owned();
        head.push(".head");
        if is_another && std::fs::symlink_metadata(&head).is_err() {
            let says = format!("{shown} is not a database and no ledger");
            return Err((says, "name another file: it is not touched"));
        }
    } else if kind.is_socket() || kind.is_fifo() && !leads_to_own(file) {
        let says = format!("{shown} is a pipe or a socket, which would be waited for");
        return Err((says, "name a file, or write stdout"));
    }
    Ok(())
}

/// What keeps a file from being written or made.
fn writable(file: &Path) -> Result<(), String> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let here = || std::env::current_dir().unwrap_or_else(|_| dir.to_owned());
    let named = if dir == "." { here() } else { dir.to_owned() };
    let shown = named.display();
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("the directory {shown} does not exist"));
        }
        Err(error) => return Err(format!("the directory {shown} cannot be used: {error}")),
        Ok(found) if !found.is_dir() => return Err(format!("{shown} is no directory")),
        Ok(_) => {}
    }
    if let Err(error) = may(dir, Access::WRITE_OK | Access::EXEC_OK) {
        return Err(format!("the directory {shown} cannot be written: {error}"));
    }
    match std::fs::metadata(file) {
        Ok(found) if found.is_dir() => Err(format!("{} is a directory", file.display())),
        Ok(_) => may(file, Access::WRITE_OK)
            .map_err(|error| format!("{} cannot be written: {error}", file.display())),
        Err(_) => Ok(()),
    }
}

/// Whether a name is one of what this process has open (`/dev/stdout`), or a link to one.
fn leads_to_own(file: &Path) -> bool {
    const LINKS_MAX: usize = 8;
    let mut at = file.to_owned();
    for _ in 0..LINKS_MAX {
        if at.starts_with("/dev") || at.starts_with("/proc") {
            return true;
        }
        let Ok(next) = std::fs::read_link(&at) else {
            return false;
        };
        at = at.parent().unwrap_or(Path::new("")).join(next);
    }
    false
}

fn may(path: &Path, access: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, access, AtFlags::EACCESS)?)
}

#[cfg(test)]
mod tests {
    use super::{leads_to_own, of_a_kind};

    #[test]
    fn what_would_be_waited_for_and_what_is_another_file_are_faults() {
        let dir = tempfile::tempdir().expect("a directory");
        let [pipe, short, junk, database, absent] =
            ["pipe", "short", "junk", "database", "absent"].map(|name| dir.path().join(name));
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).expect("a pipe");
        std::fs::write(&short, "SQL").expect("a file");
        std::fs::write(&junk, [7; 300]).expect("a file");
        std::fs::write(&database, first_page()).expect("a file");
        let [broken, linked] = ["broken", "linked"].map(|name| dir.path().join(name));
        std::fs::write(&broken, [7; 300]).expect("a file");
        std::fs::write(dir.path().join("broken.head"), "1:0").expect("a file");
        std::os::unix::fs::symlink("/dev/stdout", &linked).expect("a link");
        assert!(leads_to_own(&linked) && !leads_to_own(&pipe));
        let says = |file: &std::path::Path, is_ledger| {
            of_a_kind(file, is_ledger).map_err(|(says, _)| says)
        };
        for (file, is_ledger, expected) in [
            (&pipe, false, Some("is a pipe or a socket")),
            (&pipe, true, Some("is no file")),
            (&short, true, Some("is not a database and no ledger")),
            (&junk, true, Some("is not a database and no ledger")),
            (&database, true, None),
            (&absent, true, None),
            (&broken, true, None),
            (&absent, false, None),
            (&junk, false, None),
        ] {
            let said = says(file, is_ledger).err();
            let is_so = match (&said, expected) {
                (Some(said), Some(expected)) => said.contains(expected),
                (said, expected) => said.is_none() && expected.is_none(),
            };
            assert!(is_so, "{}: {said:?}", file.display());
        }
        // What standard output is, a pipe here or not, may be named.
        assert_eq!(says(std::path::Path::new("/dev/null"), false), Ok(()));
    }

    /// The first page of an empty database, as far as anybody looks at it here.
    fn first_page() -> Vec<u8> {
        let mut page = super::DATABASE.to_vec();
        page.resize(4096, 0);
        page
    }
}
