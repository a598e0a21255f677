//! An index can name anything; what is read lies in its directory and has an end.

use std::fs;

use super::*;
use crate::regular::tests::pipe_at;

/// The reasons of a set whose one entry names these files.
fn reasons(dir: &Path, screen: Screen) -> Vec<&'static str> {
    let index = r#"{"0": {"task": "task.txt", "image": "data/img.png", "ocr": "data/ocr.json"}}"#;
    fs::write(dir.join("train.json"), index).unwrap();
    let reader = Omniact {
        screen,
        place: Place::First,
        root: None,
    };
    let units = reader.units(&[dir.to_owned()]).unwrap();
    let mut reasons = Vec::new();
    let mut each = |_, session: Result<Conversation, Fault>| {
        reasons.push(session.map_or_else(|fault| fault.reason, |_| "read"));
        ControlFlow::Continue(())
    };
    reader.read(&units[0], &mut Sink::new(&mut each)).unwrap();
    reasons
}

/// A directory with a task, and one beside it.
fn set() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("set");
    fs::create_dir_all(dir.join("data")).unwrap();
    fs::write(dir.join("task.txt"), "Task: Go.\nOutput Script:\nclick()").unwrap();
    fs::write(temp.path().join("secret"), r#"{"password": [1, 2]}"#).unwrap();
    (temp, dir)
}

#[test]
fn a_link_that_leads_out_of_the_root_is_not_read() {
    let (temp, dir) = set();
    for name in ["data/img.png", "data/ocr.json"] {
        std::os::unix::fs::symlink(temp.path().join("secret"), dir.join(name)).unwrap();
    }
    for screen in [Screen::Image, Screen::DetactText] {
        assert_eq!(reasons(&dir, screen), ["path_leads_out"]);
    }
    // A link within the root is one more name of a file.
    for name in ["data/img.png", "data/ocr.json"] {
        fs::remove_file(dir.join(name)).unwrap();
        std::os::unix::fs::symlink("real", dir.join(name)).unwrap();
    }
    fs::write(dir.join("data/real"), r#"{"ok": [1, 2]}"#).unwrap();
    for screen in [Screen::Image, Screen::DetactText] {
        assert_eq!(reasons(&dir, screen), ["read"]);
    }
}

#[test]
fn a_pipe_that_an_index_names_is_not_waited_for() {
    let (_temp, dir) = set();
    for name in ["data/img.png", "data/ocr.json"] {
        pipe_at(&dir.join(name));
    }
    for screen in [Screen::Image, Screen::DetactText] {
        assert_eq!(reasons(&dir, screen), ["no_file"]);
    }
}
