//! `listen.hosts` and `cors`: which hosts a request may name, and pages of which origins may ask.
//!
//! Not here: comparing them with a request (`policy::web`).

use std::net::SocketAddr;

use policy::host_pattern::HostPattern;
use policy::web::{Hosts, Origins, Web};

use super::host::data_address;
use crate::decode::{At, OneOrMany, Written};
use crate::schema::Document;

impl super::Lowering<'_> {
    pub(super) fn web(&mut self, document: &Document) -> Web {
        let mut hosts = self.hosts(document, data_address(document));
        if let Hosts::Loopback(names) | Hosts::Only(names) = &mut hosts {
            names.extend(hosts_of_listeners(document));
        }
        let origins = document.cors.get().and_then(|cors| cors.origins.get());
        if origins.is_some() {
            for (place, route) in document.routes.items() {
                if route.as_ref().is_some_and(|route| !route.cors.is_absent()) {
                    let says = "says which pages may read its answers, and `cors` of the gate does for all routes";
                    self.fault(&place.below("cors"), says, "write one of them");
                }
            }
        }
        let origins = match self.all_or_these(origins, |origin| &origin.0) {
            Listed::None => Origins::None,
            Listed::All => Origins::Any,
            Listed::These(origins) => Origins::Only(origins),
        };
        Web { hosts, origins }
    }

    /// Hosts that a listener answers for. On loopback it is loopback hosts too, unless the document
    /// says that it answers for all.
    pub(super) fn hosts(&mut self, document: &Document, listener: SocketAddr) -> Hosts {
        let listen = document.listen.get();
        let on_loopback = listener.ip().is_loopback();
        let hosts = listen.and_then(|listen| listen.hosts.get());
        match self.all_or_these(hosts, |host| &host.0) {
            Listed::None if on_loopback => Hosts::Loopback(Vec::new()),
            Listed::None | Listed::All => Hosts::Any,
            Listed::These(hosts) if on_loopback => Hosts::Loopback(hosts),
            Listed::These(hosts) => Hosts::Only(hosts),
        }
    }

    fn all_or_these<T: Written>(
        &mut self,
        written: Option<&OneOrMany<T>>,
        text: impl Fn(&T) -> &String,
    ) -> Listed {
        let Some(OneOrMany(list)) = written else {
            return Listed::None;
        };
        let all = list.iter().find(|at| text(&at.value) == "*");
        if let (Some(all), true) = (all, list.len() > 1) {
            let says = "\"*\" is all of them already";
            let hint = "write it alone, or leave it out";
            self.fault(&all.place, says, hint);
        }
        if all.is_some() {
            return Listed::All;
        }
        let text = |at: &At<T>| Box::from(text(&at.value).as_str());
        Listed::These(list.iter().map(text).collect())
    }
}

/// The hosts that listeners are for: they are answered for, whatever else is.
fn hosts_of_listeners(document: &Document) -> impl Iterator<Item = Box<str>> {
    let listen = document.listen.get().into_iter();
    let listeners = listen.flat_map(|listen| listen.listeners.items());
    let hosts = listeners.filter_map(|(_, listener)| listener.as_ref()?.host.get());
    hosts.map(|at| match &at.value.0 {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Below(domain) => format!("*.{domain}").into(),
    })
}

/// What a list with a `*` in it comes to.
enum Listed {
    None,
    All,
    These(Vec<Box<str>>),
}
