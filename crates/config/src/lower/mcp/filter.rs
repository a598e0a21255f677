//! What is seen of servers: names with conditions, which the host compiles, and what tools are pinned to.
//!
//! Invariant: a condition stands in the snapshot as it is written until it is compiled, and cannot be decided before.
//! Not here: what they mean ([`policy::mcp`]).

use policy::mcp::{Digest, Glob, Named, OnChange, Pins, Selection, Shows, When};

use crate::decode::{Field, OneOrList, ShortOrFull};
use crate::scalar::NameGlob;
use crate::schema::mcp as schema;

/// What clients see of each kind of thing.
pub(super) fn shows(
    tools: &Field<schema::Selection>,
    prompts: &Field<schema::Selection>,
    resources: &Field<schema::Selection>,
) -> Shows {
    Shows {
        tools: selection(tools),
        prompts: selection(prompts),
        resources: of_uris(selection(resources)),
    }
}

/// What a server's tools are to be, where that is said.
pub(super) fn pins(name: &str, server: &schema::McpServer) -> Option<Pins> {
    if server.pin.is_absent() && server.pins.is_absent() {
        return None;
    }
    let written = server.pins.items().iter();
    let written = written.filter_map(|(tool, digest)| {
        let digits = digest.as_ref()?.value.0.strip_prefix("sha256:")?;
        Some((tool.value.0.as_str().into(), digest_of(digits)?))
    });
    Some(Pins {
        on_change: server.pin.get().map_or(OnChange::Refuse, |at| at.value.0),
        written: (!server.pins.is_absent()).then(|| written.collect()),
        of: at(name, server),
    })
}

/// The name of a server and where it is, or what is started.
pub(super) fn at(name: &str, server: &schema::McpServer) -> Box<str> {
    let at = match (server.target.url.get(), server.command.get()) {
        (Some(at), _) => {
            let scheme = if at.value.tls { "https" } else { "http" };
            format!("{scheme}://{}{}", at.value.authority, at.value.base_path)
        }
        (None, command) => {
            let args = server.args.items().iter().map(|at| at.value.0.as_str());
            let command = command.map(|at| at.value.0.as_str());
            command
                .into_iter()
                .chain(args)
                .collect::<Vec<_>>()
                .join(" ")
        }
    };
    format!("{name} {at}").into()
}

fn digest_of(digits: &str) -> Option<Digest> {
    let mut digest = Digest::default();
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// In a name of URIs an expression of a template stands for any text, so that whoever names a template names what it makes.
fn of_uris(mut selection: Selection) -> Selection {
    for of in selection.allow.iter_mut().chain(&mut selection.deny) {
        of.names = pattern(&of.names);
    }
    selection
}

fn pattern(glob: &Glob) -> Glob {
    let mut pattern = String::new();
    let mut rest = &*glob.0;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else {
            break;
        };
        pattern.push_str(before);
        pattern.push('*');
        rest = after;
    }
    pattern.push_str(rest);
    Glob(pattern.into())
}

fn selection(written: &Field<schema::Selection>) -> Selection {
    written
        .get()
        .map_or_else(Selection::default, |of| Selection {
            allow: named(&of.allow),
            deny: named(&of.deny),
        })
}

fn named(written: &Field<OneOrList<ShortOrFull<NameGlob, schema::NamesWhen>>>) -> Vec<Named> {
    let items = written.get().map_or(&[][..], |list| &list.0);
    let mut all = Vec::new();
    for (_, item) in items {
        match item {
            Some(ShortOrFull::Short(at)) => {
                all.push(Glob(at.value.0.as_str().into()).into());
            }
            Some(ShortOrFull::Full(full)) => {
                let Some(when) = full.when.get() else {
                    continue;
                };
                let place = &when.place;
                let when = When::Written {
                    text: when.value.0.as_str().into(),
                    place: format!("{} (line {})", place.path, place.line).into(),
                };
                all.extend(full.name.items().iter().map(|at| Named {
                    names: Glob(at.value.0.as_str().into()),
                    when: Some(when.clone()),
                }));
            }
            None => {}
        }
    }
    all
}
