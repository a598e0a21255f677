//! `prices.catalogue`: what a catalogue says, as prices of the backends whose addresses are its providers'.

use std::collections::HashSet;
use std::path::Path;

use policy::id::BackendId;
use policy::price::Prices;
use policy::snapshot::{Backend, Snapshot};

use super::{Written, id};
use crate::catalogue::{BUILT_IN, BUILT_IN_NAME, CatalogueModel};
use crate::decode::{At, Decode, MapOf};
use crate::lower::backend::number;
use crate::lower::{Lowering, text, texts};
use crate::node;
use crate::scalar::{CatalogueAt, Name};
use crate::schema::PriceList;
use crate::schema::catalogue::{Listed, Provider};

impl Lowering<'_> {
    /// Adds what a catalogue says of models that have no price of their own.
    pub(super) fn add_catalogue(
        &mut self,
        at: &At<CatalogueAt>,
        list: &PriceList,
        snapshot: &Snapshot,
        prices: &mut Prices,
    ) {
        let models = match &at.value {
            CatalogueAt::BuiltIn => self.built_in(),
            CatalogueAt::File(file) => {
                let file = At {
                    value: file.clone(),
                    place: at.place.clone(),
                    shown: at.shown.clone(),
                };
                let Some((path, bytes)) = self.read(&file) else {
                    return;
                };
                self.models_of(&path, &bytes)
            }
        };
        let written = list.models.0.iter();
        let own: HashSet<&str> = written.map(|(model, _)| model.value.0.as_str()).collect();
        let mut is_of_any = false;
        for (index, backend) in snapshot.backends.iter().enumerate() {
            let at = BackendId(number(index));
            for model in &models {
                if is_of(backend, model, snapshot) {
                    is_of_any = true;
                    add(model, (at, backend), &own, prices);
                }
            }
        }
        let is_sound = self.findings.faults.is_empty();
        if !is_of_any && is_sound && !snapshot.backends.is_empty() {
            let says = "prices nothing: no backend has the address of a provider that it lists";
            let hint =
                "prices of models at other addresses are written under `prices`, by their names";
            self.warn(&at.place, says, hint);
        }
    }

    /// The models of the catalogue that is built in.
    pub(in crate::lower) fn built_in(&mut self) -> Vec<CatalogueModel> {
        self.models_of(Path::new(BUILT_IN_NAME), BUILT_IN.as_bytes())
    }

    /// The models of a catalogue; its faults are those of its file.
    pub(in crate::lower) fn models_of(&mut self, path: &Path, bytes: &[u8]) -> Vec<CatalogueModel> {
        let before = self.findings.faults.len();
        let mut models = Vec::new();
        let text = String::from_utf8_lossy(bytes);
        match node::parse(&text) {
            Err(faults) => self.findings.faults.extend(faults),
            Ok(root) => {
                let providers = MapOf::<Name, Provider>::decode(&root, "", &mut self.findings);
                let mut names = HashSet::new();
                for (name, provider) in providers.iter().flat_map(|providers| &providers.0) {
                    if let Some(provider) = provider {
                        self.models_of_one(name, provider, &mut names, &mut models);
                    }
                }
            }
        }
        for fault in self.findings.faults.iter_mut().skip(before) {
            fault.file = Some(path.to_owned());
        }
        models
    }

    fn models_of_one(
        &mut self,
        provider: &At<Name>,
        written: &Provider,
        names: &mut HashSet<(String, String)>,
        models: &mut Vec<CatalogueModel>,
    ) {
        let hosts: Vec<String> = written
            .hosts
            .items()
            .iter()
            .map(|at| at.value.0.clone())
            .collect();
        for (name, listed) in written.models.items() {
            let Some(listed) = listed else { continue };
            let also = listed.also.items();
            for name in std::iter::once(name).chain(also) {
                let of = (provider.value.0.clone(), name.value.0.clone());
                if !names.insert(of) {
                    self.twice(name);
                }
            }
            let amounts = Written {
                whose: "",
                amounts: &listed.amounts,
                per: 6,
                currency: "USD",
            };
            let Some(price) = self.price(&amounts, &name.value.0, "") else {
                continue;
            };
            models.push(CatalogueModel {
                provider: provider.value.0.clone(),
                hosts: hosts.clone(),
                name: name.value.0.clone(),
                also: also.iter().map(|at| at.value.0.clone()).collect(),
                price,
                window: count(listed.window.get()),
                output_max: count(listed.output_max.get()),
                can: texts(&listed.can),
                source: text(&written.source).unwrap_or_default(),
                as_of: day(listed, written),
            });
        }
    }
}

fn count(at: Option<&At<crate::scalar::Amount>>) -> Option<u64> {
    at.map(|at| at.value.0)
}

fn day(listed: &Listed, written: &Provider) -> String {
    let own = text(&listed.as_of);
    own.or_else(|| text(&written.as_of)).unwrap_or_default()
}

/// Whether calls to a backend go to the provider of a model, all of them.
pub(in crate::lower) fn is_of(
    backend: &Backend,
    model: &CatalogueModel,
    snapshot: &Snapshot,
) -> bool {
    let mut endpoints = backend.endpoints.iter();
    !backend.is_plain
        && endpoints.all(|id| {
            let authority = snapshot
                .endpoint(*id)
                .map_or("", |endpoint| &endpoint.authority);
            let host = authority.split(':').next().unwrap_or(authority);
            model.hosts.iter().any(|of| of.eq_ignore_ascii_case(host))
        })
}

/// Adds a model's price at a backend, under each name that the gate has for what the backend is asked for by this one.
fn add(
    model: &CatalogueModel,
    (at, backend): (BackendId, &Backend),
    own: &HashSet<&str>,
    prices: &mut Prices,
) {
    for name in std::iter::once(&model.name).chain(&model.also) {
        let renamed = backend.model_names.iter();
        let renamed = renamed.filter(|(_, sent)| ***sent == **name);
        let as_it_is = (!backend.model_names.contains_key(name.as_str())).then_some(name.as_str());
        for known in renamed.map(|(known, _)| &**known).chain(as_it_is) {
            // Written is written, by either name.
            if own.contains(known) || own.contains(name.as_str()) {
                continue;
            }
            let mut price = model.price.clone();
            price.id = id(&price, known, &backend.name).into();
            prices.insert(known, Some(at), price);
        }
    }
}
