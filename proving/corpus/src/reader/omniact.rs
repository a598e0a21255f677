//! OmniACT: tasks on screens, named by paths in an index; one session is all tasks of one screen.
//!
//! A session has a system's message, the screen as a message of its own, and for each task the user's text and the
//! script that answers it. The screen stands before all tasks, where all requests share it, or after the last task,
//! where it ends what they share. It is an image (a data URL) or the text that DetACT found on it.
//! Invariant: a path that leads out of the root, by its parts or by a link, is refused. Sums of a session's files are bounded by
//! [`MAX_RECORD_BYTES`].
//! Not here: what engines see of images (`repair`).

use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::files::{below, format, walk, whole, whole_units};
use super::rows::read_json;
use super::{At, Fault, MAX_RECORD_BYTES, Position, ReadError, Reader, Sink, Tally, Unit};
use crate::conversation::{Content, Conversation, Decision, Message, Role};
use crate::json::Json;

const KNOWN: &[&str] = &["task", "image", "ocr", "color", "icon", "box"];
/// A task's text.
const MAX_TASK_BYTES: usize = 1 << 20;
/// Tasks of one screen.
const MAX_TASKS: usize = 1_000;

const SYSTEM: &str = "You operate a computer. You are shown a screen and given a task. Answer with a script that \
    carries the task out with PyAutoGUI, and with nothing else. Points are in pixels of the screen, from its upper left.";

/// How a screen is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// As an image, for models that see.
    Image,
    /// As lists of texts, icons and colours with their points, for models that read.
    #[default]
    DetactText,
}

impl Screen {
    /// The members of an entry that name what is shown.
    fn members(self) -> &'static [&'static str] {
        match self {
            Self::Image => &["image"],
            Self::DetactText => &["ocr", "icon", "color"],
        }
    }
}

/// Where a screen stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Before all tasks.
    #[default]
    First,
    /// After the task that is asked.
    Last,
}

/// The reader.
pub(super) struct Omniact {
    pub(super) screen: Screen,
    pub(super) place: Place,
    /// Where the index's paths begin; the index's own directory where nothing is said.
    pub(super) root: Option<PathBuf>,
}

impl Reader for Omniact {
    fn name(&self) -> &'static str {
        "omniact"
    }

    /// A path is an index, or a directory in which indices are called `train.json`, `val.json` and `test.json`.
    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        let mut indices = Vec::new();
        for path in paths {
            let names = ["test.json", "train.json", "val.json"];
            let mut found: Vec<PathBuf> = names.iter().map(|name| path.join(name)).collect();
            found.retain(|index| path.is_dir() && index.is_file());
            if found.is_empty() && !path.is_dir() {
                found.push(path.clone());
            }
            indices.extend(found);
        }
        whole_units(walk(
            self.name(),
            &indices,
            &["test.json, train.json, val.json"],
        )?)
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let path = &unit.file;
        let entries = index(path, sink.tally_mut())?;
        let root = self.root(path);
        for screen in by_screen(entries) {
            let position = Position {
                file: path.clone(),
                at: At::Member(screen.tasks[0].0.clone()),
                part: 0,
            };
            if !sink.wants(&position) {
                continue;
            }
            let session = self.session(root, screen, sink.tally_mut());
            if sink.give(position, session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn list(
        &self,
        unit: &Unit,
        each: &mut dyn FnMut(Position, &str) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let path = &unit.file;
        let entries = index(path, &mut Tally::default())?;
        for screen in by_screen(entries) {
            let position = Position {
                file: path.clone(),
                at: At::Member(screen.tasks[0].0.clone()),
                part: 0,
            };
            if each(position, &screen.id) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn named(&self, unit: &Unit, each: &mut dyn FnMut(&Path) -> ControlFlow<()>) {
        let entries = index(&unit.file, &mut Tally::default());
        let root = self.root(&unit.file);
        for screen in by_screen(entries.unwrap_or_default()) {
            let first = screen.tasks.first().map(|(_, entry)| entry);
            let shown = first.into_iter().flat_map(|entry| {
                let members = self.screen.members().iter();
                members.filter_map(|member| entry.text(member))
            });
            let tasks = screen.tasks.iter();
            let tasks = tasks.filter_map(|(_, entry)| entry.text("task"));
            for named in shown.chain(tasks) {
                // What leads out is not opened, and so cannot matter.
                let path = match below(root, named) {
                    Ok(None) => continue,
                    Ok(Some(path)) => path,
                    Err(_) => root.join(named),
                };
                if each(&path).is_break() {
                    return;
                }
            }
        }
    }
}

/// The entries of an index.
fn index(path: &Path, tally: &mut Tally) -> Result<Vec<(String, Json)>, ReadError> {
    let bytes = whole(path, MAX_RECORD_BYTES)?;
    let bytes = bytes.ok_or_else(|| format(path, "is longer than 64 MiB"))?;
    match read_json(&bytes, tally).map_err(|f| format(path, f.says))? {
        Json::Object(entries) => Ok(entries),
        _ => Err(format(path, "is no index: an object of tasks was expected")),
    }
}

/// The tasks of one screen, each with the name of its entry.
struct Shown {
    id: String,
    tasks: Vec<(String, Json)>,
}

/// Groups entries by platform, app and screen, which their images' paths end in, in the order of the index.
fn by_screen(entries: Vec<(String, Json)>) -> Vec<Shown> {
    let mut screens: Vec<Shown> = Vec::new();
    let mut places = HashMap::new();
    for (name, entry) in entries {
        let id = screen_id(&entry).unwrap_or_else(|| format!("task-{name}"));
        let at = *places.entry(id.clone()).or_insert_with(|| {
            screens.push(Shown {
                id,
                tasks: Vec::new(),
            });
            screens.len() - 1
        });
        screens[at].tasks.push((name, entry));
    }
    screens
}

fn screen_id(entry: &Json) -> Option<String> {
    let image = entry.text("image")?;
    let stem = image.rsplit_once('.').map_or(image, |(stem, _)| stem);
    let parts: Vec<&str> = stem.split('/').filter(|part| !part.is_empty()).collect();
    Some(parts[parts.len().saturating_sub(3)..].join("/")).filter(|id| !id.is_empty())
}

impl Omniact {
    /// Where the paths of this index begin.
    fn root<'a>(&'a self, index: &'a Path) -> &'a Path {
        let own = index.parent().unwrap_or(Path::new(""));
        self.root.as_deref().unwrap_or(own)
    }

    fn session(&self, root: &Path, shown: Shown, tally: &mut Tally) -> Result<Conversation, Fault> {
        if shown.tasks.len() > MAX_TASKS {
            let says = format!("has {} tasks, at most 1,000 are read", shown.tasks.len());
            return Err(Fault::broken("too_many_messages", says));
        }
        let screen = self.screen(root, &shown.tasks[0].1, tally)?;
        let mut session = Conversation {
            id: shown.id,
            messages: vec![said(Role::System, Content::Text(SYSTEM.to_owned())), screen],
            ..Conversation::default()
        };
        let mut history = vec![0];
        for (name, entry) in shown.tasks {
            tally.unknown_members("entry", &entry, KNOWN);
            let text = file(root, &entry, "task", MAX_TASK_BYTES)?;
            let text = String::from_utf8_lossy(&text);
            let Some((task, script)) = task(&text) else {
                let says = format!("the task of entry {name:?} has no line \"Output Script:\"");
                return Err(Fault::broken("no_task", says));
            };
            let asked = session.messages.len();
            session.messages.push(said(Role::User, Content::Text(task)));
            session
                .messages
                .push(said(Role::Assistant, Content::Text(script)));
            history.push(asked);
            session.decisions.push(Decision {
                prompt: self.prompt(&history),
                answer: Some(asked + 1),
                ..Decision::default()
            });
            history.push(asked + 1);
        }
        Ok(session)
    }

    /// The history with the screen, which is message 1, in its place.
    fn prompt(&self, history: &[usize]) -> Vec<usize> {
        let at = match self.place {
            Place::First => 1,
            Place::Last => history.len(),
        };
        let mut prompt = history.to_vec();
        prompt.insert(at, 1);
        prompt
    }

    fn screen(&self, root: &Path, entry: &Json, tally: &mut Tally) -> Result<Message, Fault> {
        let part = match self.screen {
            Screen::Image => {
                let image = file(root, entry, "image", MAX_RECORD_BYTES / 2)?;
                let url = format!("data:{};base64,{}", kind(&image), STANDARD.encode(&image));
                let image = Json::object([("url", Json::String(url))]);
                Json::object([("type", Json::from("image_url")), ("image_url", image)])
            }
            Screen::DetactText => {
                let text = Json::String(detact(root, entry, tally)?);
                Json::object([("type", Json::from("text")), ("text", text)])
            }
        };
        Ok(said(Role::User, Content::Parts(vec![part])))
    }
}

fn said(role: Role, content: Content) -> Message {
    Message {
        role,
        content: Some(content),
        ..Message::default()
    }
}

fn kind(image: &[u8]) -> &'static str {
    match image {
        [0xff, 0xd8, ..] => "image/jpeg",
        [b'R', b'I', b'F', b'F', ..] => "image/webp",
        _ => "image/png",
    }
}

/// The file that a member names.
fn file(root: &Path, entry: &Json, member: &str, most: usize) -> Result<Vec<u8>, Fault> {
    let Some(named) = entry.text(member) else {
        return Err(Fault::broken(
            "no_path",
            format!("an entry has no {member}"),
        ));
    };
    let unread = |why: io::Error| {
        // What the system says differs from machine to machine.
        let why = match why.raw_os_error() {
            Some(_) => why.kind().to_string(),
            None => why.to_string(),
        };
        let says = format!("its {member} {named:?} cannot be read: {why}");
        Fault::broken("no_file", says)
    };
    let Some(path) = below(root, named).map_err(unread)? else {
        let says = format!("its {member} {named:?} leads out of the root");
        return Err(Fault::broken("path_leads_out", says));
    };
    match whole(&path, most) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => {
            let says = format!("its {member} {named:?} is longer than {most} bytes");
            Err(Fault::broken("too_long", says))
        }
        Err(ReadError::File { source, .. }) => Err(unread(source)),
        Err(other) => Err(unread(io::Error::other(other))),
    }
}

/// The task and the script of a task's text.
fn task(text: &str) -> Option<(String, String)> {
    let (task, script) = text.split_once("Output Script:")?;
    let task = task.trim();
    let task = task.strip_prefix("Task:").unwrap_or(task).trim();
    Some((task.to_owned(), script.trim().to_owned()))
}

/// What DetACT found, as text: each list under its name, each thing with its points. Lists that are not there are empty.
fn detact(root: &Path, entry: &Json, tally: &mut Tally) -> Result<String, Fault> {
    let mut text = String::from("The screen holds:");
    for (member, title) in [("ocr", "Text"), ("icon", "Icons"), ("color", "Colours")] {
        if entry.present(member).is_none() {
            tally.note("detact_list_missing");
            continue;
        }
        let bytes = file(root, entry, member, MAX_RECORD_BYTES / 8)?;
        let mut found = read_json(&bytes, tally)?;
        // Texts stand one level deeper than icons and colours.
        if let Some(inner) = found.take(member).filter(Json::is_object) {
            found = inner;
        }
        let _ = write!(text, "\n\n{title}:");
        for (label, points) in found.as_object().unwrap_or_default() {
            let _ = write!(text, "\n- {label}: {points}");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
