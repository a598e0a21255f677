//! Which object says what of our document, so that what `config` finds is told where a person wrote it.

use config::Fault;

use crate::findings::Spot;

/// Places of the document, and whose they are.
#[derive(Debug, Default)]
pub struct Origins(Vec<(String, Spot)>);

impl Origins {
    pub(crate) fn add(&mut self, path: &str, spot: &Spot) {
        self.0.push((path.to_owned(), spot.clone()));
    }

    /// A fault of the document, told of the object: the nearest that stands around its place.
    #[must_use]
    pub fn told(&self, fault: Fault) -> Fault {
        let is_around = |(path, _): &&(String, Spot)| {
            let rest = fault.path.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let around = self
            .0
            .iter()
            .filter(is_around)
            .max_by_key(|(path, _)| path.len());
        let Some((_, spot)) = around else {
            return Fault {
                line: None,
                ..fault
            };
        };
        let place = match (spot.object.is_empty(), spot.path.is_empty()) {
            (true, _) => fault.path,
            (false, true) => format!("{} ({})", spot.object, fault.path),
            (false, false) => format!("{} {} ({})", spot.object, spot.path, fault.path),
        };
        Fault {
            file: Some(spot.file.to_path_buf()),
            line: (spot.line > 0).then_some(spot.line),
            path: place,
            ..fault
        }
    }
}
