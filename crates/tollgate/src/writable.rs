//! Whether what the gate writes can be written, asked before it is opened.
//!
//! Invariant: nothing is made or changed, so that `check` may ask on a machine where a gate runs.
//! Not here: what is written (`ledger`, `telemetry`), whether a disk has room (`host`).

use std::io;
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
        writable(file).err().map(|says| Fault {
            path: setting.to_owned(),
            line,
            says,
            hint: hint.to_owned(),
        })
    };
    ledger.into_iter().chain(log).filter_map(fault).collect()
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

fn may(path: &Path, access: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, access, AtFlags::EACCESS)?)
}
