//! Endpoint pickers, each asked over one connection, whichever configurations name it.
//!
//! Invariant: a picker that two configurations in a row name in the same way keeps its connection; one of which another root is believed
//! has a new one.
//! Not here: which they are (`balancing`), asking (`callout`).

use std::sync::{Arc, Mutex, PoisonError, Weak};

use callout::EndpointPicker;

/// The pickers of the configurations in force.
#[derive(Debug, Default)]
pub(crate) struct Pickers(Mutex<Vec<(config::EndpointPicker, Weak<EndpointPicker>)>>);

impl Pickers {
    /// The one that is written so, or else a new one. By the system's roots, which may be others by now, it is a new one.
    pub(crate) fn of(
        &self,
        written: &config::EndpointPicker,
        make: impl FnOnce() -> Result<EndpointPicker, String>,
    ) -> Result<Arc<EndpointPicker>, String> {
        let is_clear = written.url.starts_with("http://");
        if !is_clear && !written.is_anyone && written.ca_pem.is_none() {
            return make().map(Arc::new);
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, picker)| picker.strong_count() > 0);
        let mut known = all.iter().filter(|(of, _)| of == written);
        if let Some(known) = known.find_map(|(_, picker)| picker.upgrade()) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        all.push((written.clone(), Arc::downgrade(&made)));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::services::Services;

    #[test]
    fn a_picker_that_is_written_the_same_is_kept_over_a_reload() {
        let services = Services::default();
        let written = |url: &str| config::EndpointPicker {
            url: url.to_owned(),
            timeout: Duration::from_secs(1),
            fails_open: false,
            ca_pem: None,
            is_anyone: true,
            adds_fields: false,
        };
        let of = |written: &config::EndpointPicker| {
            let made = crate::balancing::picker(written, &services);
            made.expect("a picker")
        };
        let first = of(&written("https://10.0.0.1:9002"));
        assert!(Arc::ptr_eq(&first, &of(&written("https://10.0.0.1:9002"))));
        assert!(!Arc::ptr_eq(&first, &of(&written("https://10.0.0.2:9002"))));
        let by_roots = config::EndpointPicker {
            is_anyone: false,
            ..written("https://10.0.0.1:9002")
        };
        assert!(!Arc::ptr_eq(&of(&by_roots), &of(&by_roots)));
    }
}
