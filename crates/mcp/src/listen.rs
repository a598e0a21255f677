//! `subscriptions/listen`: what a client without a session wants to hear of, and how it is told.
//!
//! Invariant: nothing is told that was not asked for, and each message names the request that asked.
//! Not here: which servers are listened to (the host), what may be heard of (`policy::mcp`).

use std::ops::Range;

use wire::json::Kind;

use crate::discover::own_info;
use crate::envelope::{Fault, Message, Says, members};
use crate::handshake::Abilities;
use crate::reply::{self, string};

/// The method.
pub const METHOD: &str = "subscriptions/listen";
/// Member of `_meta`: the request that asked.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// What a server says first.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// What tells of a task, which is as asking about it would tell.
pub const OF_TASK: &str = "notifications/tasks";
/// Most resources of one stream.
pub const URIS_MAX: usize = 256;
/// Most tasks of one.
pub const TASKS_MAX: usize = 256;

/// Lists: the member that asks for their changes, the method that tells of one, and who tells of them.
const LISTS: [(&str, &str, Abilities); 3] = [
    (
        "toolsListChanged",
        "notifications/tools/list_changed",
        Abilities::TOOLS_CHANGE,
    ),
    (
        "promptsListChanged",
        "notifications/prompts/list_changed",
        Abilities::PROMPTS_CHANGE,
    ),
    (
        "resourcesListChanged",
        "notifications/resources/list_changed",
        Abilities::RESOURCES_CHANGE,
    ),
];

/// What is to be heard of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Which lists.
    lists: [bool; 3],
    /// Which resources.
    pub uris: Vec<String>,
    /// Which tasks.
    pub tasks: Vec<String>,
}

impl Filter {
    /// Reads it out of a request's params.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(message: &[u8], params: Option<&Range<usize>>) -> Result<Self, Fault> {
        let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
        let text = message.get(params.clone()).unwrap_or_default();
        let [filter] = members(text, ["notifications"], 0)?;
        let Some((Kind::Object, text, _)) = filter else {
            return Err(Fault::NotRpc("`params.notifications` must be an object"));
        };
        let names = [
            LISTS[0].0,
            LISTS[1].0,
            LISTS[2].0,
            "resourceSubscriptions",
            "taskIds",
        ];
        let [tools, prompts, resources, uris, tasks] = members(text, names, 0)?;
        let lists = [tools, prompts, resources].map(|of| matches!(of, Some((Kind::True, ..))));
        let uris: Vec<String> = match uris {
            None => Vec::new(),
            Some((_, text, _)) => serde_json::from_slice(text)
                .map_err(|_| Fault::NotRpc("`resourceSubscriptions` must be a list of URIs"))?,
        };
        if uris.len() > URIS_MAX {
            return Err(Fault::NotRpc(
                "`resourceSubscriptions` has more than 256 URIs",
            ));
        }
        let tasks: Vec<String> = match tasks {
            None => Vec::new(),
            Some((_, text, _)) => serde_json::from_slice(text)
                .map_err(|_| Fault::NotRpc("`taskIds` must be a list of ids"))?,
        };
        if tasks.len() > TASKS_MAX {
            return Err(Fault::NotRpc("`taskIds` has more than 256 ids"));
        }
        Ok(Self { lists, uris, tasks })
    }

    /// All lists that whoever has these abilities tells of.
    #[must_use]
    pub fn of_lists(abilities: Abilities) -> Self {
        Self {
            lists: LISTS.map(|(.., ability)| abilities.has(ability)),
            ..Self::default()
        }
    }

    /// It, with these resources.
    #[must_use]
    pub fn with(self, uris: Vec<String>) -> Self {
        Self { uris, ..self }
    }

    /// It, with these tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: Vec<String>) -> Self {
        Self { tasks, ..self }
    }

    /// As much of it as whoever has these abilities tells of, with these resources and no task.
    #[must_use]
    pub fn within(&self, abilities: Abilities, uris: Vec<String>) -> Self {
        let mut lists = self.lists;
        for (is_asked, (.., ability)) in lists.iter_mut().zip(LISTS) {
            *is_asked &= abilities.has(ability);
        }
        let has_uris = abilities.has(Abilities::SUBSCRIPTIONS);
        Self {
            lists,
            uris: if has_uris { uris } else { Vec::new() },
            tasks: Vec::new(),
        }
    }

    /// What of it some of these tell of, with these resources and no task.
    #[must_use]
    pub fn of_all(&self, agreed: &[Self], uris: Vec<String>) -> Self {
        let mut lists = [false; 3];
        for of in agreed {
            for (is_told, tells) in lists.iter_mut().zip(of.lists) {
                *is_told |= tells;
            }
        }
        Self {
            lists,
            uris,
            tasks: Vec::new(),
        }
    }

    /// Whether nothing is to be heard of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty() && self.tasks.is_empty() && !self.lists.contains(&true)
    }

    /// Whether it asks for a notification of this method; of resources and tasks their names count beside it.
    #[must_use]
    pub fn has(&self, method: &str) -> bool {
        let mut lists = self.lists.iter().zip(LISTS);
        lists.any(|(is_asked, (_, of, _))| *is_asked && of == method)
            || method == "notifications/resources/updated" && !self.uris.is_empty()
            || method == OF_TASK && !self.tasks.is_empty()
    }

    /// As an object.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let lists = self.lists.iter().zip(LISTS);
        let lists = lists.filter(|(is_asked, _)| **is_asked);
        let mut parts: Vec<Vec<u8>> = lists
            .map(|(_, (member, ..))| format!("\"{member}\":true").into_bytes())
            .collect();
        for (member, names) in [
            ("resourceSubscriptions", &self.uris),
            ("taskIds", &self.tasks),
        ] {
            if !names.is_empty() {
                let names: Vec<Vec<u8>> = names.iter().map(|name| string(name)).collect();
                let open = format!("\"{member}\":[").into_bytes();
                parts.push([&*open, &*names.join(&b','), b"]"].concat());
            }
        }
        [b"{", &*parts.join(&b','), b"}"].concat()
    }
}

/// What is said first: what of it will be told. `id` is that of the request, as written.
#[must_use]
pub fn acknowledged(filter: &Filter, id: &[u8]) -> Vec<u8> {
    [
        format!(r#"{{"jsonrpc":"2.0","method":"{ACKNOWLEDGED}","params":{{"_meta":{{"#).as_bytes(),
        &member(id),
        br#"},"notifications":"#,
        &filter.write(),
        b"}}",
    ]
    .concat()
}

/// What is said last, where the gate ends the stream.
#[must_use]
pub fn ended(id: &[u8]) -> Vec<u8> {
    let own = own_info();
    let result = [
        br#"{"resultType":"complete","_meta":{"#.as_slice(),
        &member(id),
        b",",
        own.as_bytes(),
        b"}}",
    ];
    reply::result(id, &result.concat())
}

fn member(id: &[u8]) -> Vec<u8> {
    [format!("\"{SUBSCRIPTION}\":").as_bytes(), id].concat()
}

/// A notification with the request that asked for it, in place of whatever it names; none where it is no notification.
#[must_use]
pub fn tagged(text: &[u8], id: &[u8]) -> Option<Vec<u8>> {
    let message = Message::read(text).ok()?;
    let Says::Notification { .. } = message.says else {
        return None;
    };
    let Some(params) = message.params else {
        let with = [br#""params":{"_meta":{"#.as_slice(), &member(id), b"}}"].concat();
        return Some(reply::with_members(text, &with));
    };
    let within = text.get(params.clone())?;
    let [meta] = members(within, ["_meta"], params.start).ok()?;
    let (at, with) = match meta {
        Some((Kind::Object, meta, at)) => {
            let [before] = members(meta, [SUBSCRIPTION], at.start).ok()?;
            match before {
                Some((.., at)) => (at, id.to_vec()),
                None => (at, reply::with_members(meta, &member(id))),
            }
        }
        Some((.., at)) => (at, [b"{", &*member(id), b"}"].concat()),
        None => {
            let meta = [br#""_meta":{"#.as_slice(), &member(id), b"}"].concat();
            (params, reply::with_members(within, &meta))
        }
    };
    Some(reply::spliced(text, at, &with))
}

/// The method of a notification.
#[must_use]
pub fn method_of(text: &[u8]) -> Option<String> {
    match Message::read(text).ok()?.says {
        Says::Notification { method } => Some(method.into_owned()),
        Says::Request { .. } | Says::Response { .. } => None,
    }
}

#[cfg(test)]
mod tests;
