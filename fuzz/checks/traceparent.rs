//! What must hold for any bytes that claim to be a `traceparent`.
//!
//! A trace is continued only from one well-formed field; what the gate then tells its upstream reads back as the
//! same trace; ids are never zero.
//! Not here: what is sampled (`policy::trace`).

use policy::trace::{Sampling, TRACEPARENT_BYTES, Trace, put_span};

/// Panics when an invariant is broken. Lines of the input are the fields.
pub(crate) fn fuzz_one(input: &[u8]) {
    let fields = || input.split(|b| *b == b'\n');
    for sampling in [0, 500_000, 1_000_000].map(Sampling::millionths) {
        let trace = begun(fields(), sampling);
        assert!(trace.id != 0 && trace.span != 0 && trace.parent != Some(0));
        if fields().count() > 1 {
            assert_eq!(trace.parent, None, "of two, none");
        }
        if trace.parent.is_some() {
            // The caller's own words, whatever its version adds at the end.
            let digits = input.get(3..35).expect("it has an id");
            assert_eq!(trace.id_digits(), digits);
            assert!(
                digits
                    .iter()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            );
        }
        let mut told = trace.traceparent(trace.span);
        assert_eq!(told.len(), TRACEPARENT_BYTES);
        let next = begun([&told[..]].into_iter(), sampling);
        assert_eq!((next.id, next.parent), (trace.id, Some(trace.span)));
        assert_eq!(next.is_sampled, trace.is_sampled);
        put_span(&mut told, 0, 7);
        let next = begun([&told[..]].into_iter(), sampling);
        assert_eq!((next.id, next.parent), (trace.id, Some(7)));
    }
}

fn begun<'a>(fields: impl Iterator<Item = &'a [u8]>, sampling: Sampling) -> Trace {
    let mut bits = 41;
    Trace::begin(fields, sampling, || {
        bits += 1;
        bits
    })
}
