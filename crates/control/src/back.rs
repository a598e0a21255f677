//! The way back: objects of a document of ours, as far as there are such objects, and the rest of it beside them.
//!
//! What is made is lowered again and compared with what it was made of, so that it says the same or is not said.
//! Invariant: no secret is written; a Secret names the variable or the file where it is.
//! Not here: single objects (`made`), what objects come to (`lower`).

mod kept;
mod made;

use std::path::Path;

use config::{Fault, Node, Scalar, Value, parse_all};
use serde_json::{Map, Value as Json};

use crate::findings::Spot;
use crate::object::{member, text};
use crate::tree::Tree;
use crate::{Input, Lowered, Refused, lower};
use kept::Kept;
use made::{Backend, Route};

/// Where a gate listens unless said.
const ADDRESS: &str = "127.0.0.1:1975";
/// The header of callers where a document says none.
const CALLERS: &str = "x-workload-app";

/// What a document comes to among objects.
#[derive(Debug)]
pub struct Manifests {
    /// The objects, and a document of ours with what they cannot say.
    pub text: String,
    /// What stands in that document.
    pub left: Vec<String>,
    /// The settings for which routes stay there, and what objects say that the document does not.
    pub notes: Vec<Fault>,
}

/// Makes objects of a document of ours.
///
/// # Errors
/// It is no document, none of its routes is one that objects say, or they would say another thing.
pub fn manifests(file: &Path, text: &str) -> Result<Manifests, Vec<Fault>> {
    let of_file = |fault: Fault| Fault {
        file: Some(file.to_owned()),
        ..fault
    };
    let all = |faults: Vec<Fault>| faults.into_iter().map(of_file).collect::<Vec<_>>();
    let mut nodes = parse_all(text).map_err(all)?;
    let fault = |path: &str, says: &str, hint: &str| {
        vec![of_file(Fault {
            file: None,
            path: path.to_owned(),
            line: None,
            says: says.to_owned(),
            hint: hint.to_owned(),
        })]
    };
    let root = nodes.pop().filter(|_| nodes.is_empty());
    let Some(root) = root.filter(|root| matches!(root.value, Value::Map(_))) else {
        return Err(fault("", "is no single document of ours", ""));
    };
    let listen = member(&root, "listen");
    let address = listen
        .and_then(|of| self::text(of, "data"))
        .unwrap_or(ADDRESS);
    let Ok(address) = address.parse::<std::net::SocketAddr>() else {
        let hint = "write one address with a port, such as 0.0.0.0:8080";
        return Err(fault(
            "listen.data",
            "is no single address of a Gateway",
            hint,
        ));
    };
    let identity = member(&root, "identity");
    let header = |name| identity.and_then(|of| self::text(of, name));
    let callers = header("header").unwrap_or(CALLERS);
    let backends: Vec<(String, Result<Backend, Kept>)> = entries(member(&root, "backends"))
        .map(|(name, node)| (name.to_owned(), Backend::of(name, node)))
        .collect();
    let routes = items(member(&root, "routes"));
    let users = header("user_header");
    let sorted = sorted(&routes, &backends, callers, users);
    let mut notes: Vec<Fault> = sorted.notes.into_iter().map(of_file).collect();
    let said = sorted.said;
    if said.is_empty() {
        return match notes.is_empty() {
            true => Err(fault("routes", "has no route", "write one")),
            false => {
                let says = "are none that objects can say, so nothing is printed";
                notes.extend(fault("routes", says, "change what is named above"));
                Err(notes)
            }
        };
    }
    let used = |name: &String| said.iter().any(|(_, route)| route.backends.contains(name));
    let moved: Vec<(&String, &Backend)> = backends
        .iter()
        .filter(|(name, _)| used(name))
        .filter_map(|(name, backend)| Some((name, backend.as_ref().ok()?)))
        .collect();
    for (name, node) in entries(member(&root, "backends")) {
        if moved.iter().any(|(known, _)| *known == name) && member(node, "dialect").is_none() {
            let says =
                "is not said, and the object says OpenAI: calls in another form are translated";
            let hint = "where it speaks others, too, write its AIServiceBackend by hand";
            let path = format!("backends.{name}.dialect");
            notes.push(of_file(Kept::of(&path, node, says, hint).fault()));
        }
    }
    let mut objects = made::gateway(address);
    for (index, (_, route)) in said.iter().enumerate() {
        objects.extend(route.objects(index));
    }
    for (name, backend) in &moved {
        objects.extend(backend.objects(name));
    }
    let is_moved = |name: &str| moved.iter().any(|(known, _)| *known == name);
    let gone: Vec<usize> = said.iter().map(|(index, _)| *index).collect();
    let rest = rest(&root, &gone, is_moved, file);
    let left: Vec<String> = rest.iter().map(|(name, _)| name.clone()).collect();
    let mut text: String = objects
        .iter()
        .map(|tree| format!("{}---\n", tree.document()))
        .collect();
    match rest.is_empty() {
        true => text.truncate(text.len() - "---\n".len()),
        false => {
            text.push_str("# What objects cannot say: a document of ours beside them.\n");
            text.push_str(&Tree::Map(rest).document());
        }
    }
    let lowered = lower(&[Input { file, text: &text }]);
    let lowered = lowered.map_err(|Refused { faults, .. }| faults)?;
    match difference(&root, &lowered, address, &gone, &is_moved) {
        None => Ok(Manifests { text, left, notes }),
        Some(path) => {
            let says = "would be another thing of objects";
            let hint = "they ask routes with a match of models first, and then in their order: write them so";
            Err(fault(&path, says, hint))
        }
    }
}

/// Routes that are objects, with their places in the document, and why the others are none.
struct Sorted {
    said: Vec<(usize, Route)>,
    notes: Vec<Fault>,
}

/// Which routes are objects. What stands first is asked first, and objects stand before the document beside them: behind a route that stays,
/// one is an object where no caller of either is one of the other.
fn sorted(
    routes: &[&Node],
    backends: &[(String, Result<Backend, Kept>)],
    callers: &str,
    users: Option<&str>,
) -> Sorted {
    let mut sorted = Sorted {
        said: Vec::new(),
        notes: Vec::new(),
    };
    let mut staying: Vec<(String, Option<Vec<String>>)> = Vec::new();
    for ((index, node), name) in routes.iter().enumerate().zip(names(routes)) {
        let at = format!("routes[{index}]");
        let own = texts(member(node, "workload"));
        let made = Route::of(&at, node, &name, callers, users).and_then(|route| {
            let mut faulty = backends
                .iter()
                .filter(|(name, _)| route.backends.contains(name))
                .filter_map(|(_, backend)| backend.as_ref().err());
            match faulty.next() {
                Some(kept) => Err(kept.clone()),
                None => Ok(route),
            }
        });
        let is_apart = |of: &(String, Option<Vec<String>>)| match (&of.1, &own) {
            (Some(theirs), Some(own)) => !own.iter().any(|name| theirs.contains(name)),
            _ => false,
        };
        let behind = staying.iter().find(|of| !is_apart(of));
        let kept = match (made, behind) {
            (Ok(route), None) => {
                sorted.said.push((index, route));
                continue;
            }
            (Err(kept), _) => kept,
            (Ok(_), Some((before, _))) => {
                let says = format!("is asked behind {before}, which has callers of it and stays");
                let hint = "move it before that, if it takes no call of that route's";
                Kept::of(&at, node, &says, hint)
            }
        };
        sorted.notes.push(kept.fault_of(&at));
        staying.push((at, own));
    }
    sorted
}

/// What routes are called: as they say, or else their backends, as a gate calls them.
fn names(routes: &[&Node]) -> Vec<String> {
    let said = |node: &Node| text(node, "name").map(str::to_owned);
    let mut taken: Vec<String> = routes.iter().filter_map(|node| said(node)).collect();
    let name = |node: &&Node| {
        said(node).unwrap_or_else(|| {
            let base = texts(member(node, "backend")).unwrap_or_default().join("+");
            let numbered = (2_u32..).map(|n| format!("{base}#{n}"));
            let mut all = std::iter::once(base.clone()).chain(numbered);
            let free = all.find(|name| !taken.contains(name)).unwrap_or(base);
            taken.push(free.clone());
            free
        })
    };
    routes.iter().map(name).collect()
}

/// What stays with us: all but the address, the routes that are moved, and their backends.
fn rest(
    root: &Node,
    gone: &[usize],
    is_moved: impl Fn(&str) -> bool,
    file: &Path,
) -> Vec<(String, Tree)> {
    let spot = Spot {
        file: std::rc::Rc::from(file),
        object: "".into(),
        path: String::new(),
        line: 0,
    };
    let mut rest = Vec::new();
    for (name, node) in entries(Some(root)) {
        let members = |keeps: &dyn Fn(&str) -> bool| {
            let kept = entries(Some(node)).filter(|(name, _)| keeps(name));
            let kept = kept.map(|(name, node)| (name.to_owned(), Tree::copied(node, &spot)));
            Tree::Map(kept.collect())
        };
        let tree = match name {
            "listen" => members(&|name| name != "data"),
            "backends" => members(&|name| !is_moved(name)),
            "routes" => {
                let kept = items(Some(node)).into_iter().enumerate();
                let kept = kept.filter(|(index, _)| !gone.contains(index));
                Tree::List(kept.map(|(_, node)| Tree::copied(node, &spot)).collect())
            }
            _ => Tree::copied(node, &spot),
        };
        let is_empty = match tree.bare() {
            Tree::Map(members) => members.is_empty(),
            Tree::List(items) => items.is_empty(),
            Tree::Plain(_) | Tree::Text(_) | Tree::Of(..) => false,
        };
        if !is_empty {
            rest.push((name.to_owned(), tree));
        }
    }
    // Objects make an identity where a document says none.
    if !rest.iter().any(|(name, _)| name == "identity") {
        let header = Tree::map([("header", Some(Tree::text(CALLERS)))]);
        rest.push(("identity".to_owned(), header));
    }
    rest
}

/// Where the document that objects come to says another thing than the one that they were made of.
fn difference(
    root: &Node,
    lowered: &Lowered,
    address: std::net::SocketAddr,
    gone: &[usize],
    is_moved: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let again = parse_all(&lowered.document).ok()?.pop();
    let Some(again) = again else {
        return Some(String::new());
    };
    let (mut before, mut after) = (plain(root), plain(&again));
    moved(&mut before, root, gone, is_moved);
    for document in [&mut before, &mut after] {
        let Some(members) = document.as_object_mut() else {
            return Some(String::new());
        };
        let listen = members
            .entry("listen")
            .or_insert_with(|| Json::Object(Map::new()));
        if let Some(listen) = listen.as_object_mut() {
            listen
                .entry("data")
                .or_insert_with(|| address.to_string().into());
        }
        let identity = members.entry("identity");
        identity.or_insert_with(|| serde_json::json!({ "header": CALLERS }));
    }
    for document in [&mut before, &mut after] {
        let routes = match &mut document["routes"] {
            Json::Array(routes) => routes.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        let takes_all = |route: &Json| {
            let models = &route["match"]["model"];
            let listed = models.as_array().into_iter().flatten();
            models == "*" || listed.into_iter().any(|model| model == "*")
        };
        for route in routes.iter_mut().filter(|route| takes_all(route)) {
            route.as_object_mut().map(|members| members.remove("match"));
        }
    }
    let names = before.as_object().into_iter().chain(after.as_object());
    let mut names: Vec<&String> = names.flat_map(Map::keys).collect();
    names.sort_unstable();
    let differs = names
        .into_iter()
        .find(|name| before[name.as_str()] != after[name.as_str()]);
    differs.cloned()
}

/// A document as its objects say it: their routes first and by name, their backends with a dialect.
fn moved(document: &mut Json, root: &Node, gone: &[usize], is_moved: &dyn Fn(&str) -> bool) {
    let routes = items(member(root, "routes"));
    let named = routes.iter().zip(names(&routes)).enumerate();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (index, (node, name)) in named {
        let mut route = plain(node);
        match gone.contains(&index) {
            true => {
                if let Some(members) = route.as_object_mut() {
                    members.entry("name").or_insert_with(|| name.into());
                }
                first.push(route);
            }
            false => rest.push(route),
        }
    }
    first.append(&mut rest);
    let routes = match first.len() {
        1 => first.pop().unwrap_or_default(),
        _ => Json::Array(first),
    };
    if let Some(members) = document.as_object_mut() {
        members.insert("routes".to_owned(), routes);
    }
    let backends = document.get_mut("backends").and_then(Json::as_object_mut);
    for (name, backend) in backends.into_iter().flatten() {
        if let Some(members) = backend.as_object_mut().filter(|_| is_moved(name)) {
            members.entry("dialect").or_insert_with(|| "openai".into());
        }
    }
}

/// A value however it is written: a list of one is that one, and so is a number in quotes.
fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Scalar(Scalar { raw, .. }) => Json::String(raw.replace("$$", "$")),
        Value::List(items) => match items.as_slice() {
            [one] => plain(one),
            items => Json::Array(items.iter().map(plain).collect()),
        },
        Value::Map(entries) => {
            let member = |entry: &config::Entry| (entry.key.clone(), plain(&entry.node));
            Json::Object(entries.iter().map(member).collect())
        }
    }
}

fn entries(node: Option<&Node>) -> impl Iterator<Item = (&str, &Node)> {
    let entries = match node.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    entries
        .iter()
        .map(|entry| (entry.key.as_str(), &entry.node))
}

/// The items of a list, or the one that stands for a list of one.
fn items(node: Option<&Node>) -> Vec<&Node> {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items.iter().collect(),
        Some(Value::Map(_) | Value::Scalar(_)) => node.into_iter().collect(),
        None => Vec::new(),
    }
}

/// The texts of a list, or of one; nothing where one of them is none, or has a variable in it.
fn texts(node: Option<&Node>) -> Option<Vec<String>> {
    let text = |node: &Node| match &node.value {
        Value::Scalar(Scalar { raw, .. }) if !raw.contains('$') => Some(raw.clone()),
        _ => None,
    };
    items(node).into_iter().map(text).collect()
}

/// A text as an object has it, where a `$` is a `$`.
fn said(text: &str) -> Tree {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    match begins && !is_word && text.bytes().all(is_plain) {
        true => Tree::Plain(text.to_owned()),
        false => Tree::Plain(Json::from(text).to_string()),
    }
}
