//! Interned names: small integers that index one [`crate::snapshot::Snapshot`].
//!
//! Invariant: an id is only used with the snapshot that made it, and with what was made for that.
//! Not here: the names themselves.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the snapshot's vector.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A registered calling application.
    WorkloadId
);
id!(
    /// A rule from workload and model to backends.
    RouteId
);
id!(
    /// A named upstream target.
    BackendId
);
id!(
    /// One address of a backend.
    EndpointId
);
id!(
    /// One shared bucket.
    LimitId
);
id!(
    /// One budget.
    BudgetId
);
id!(
    /// One price of the catalogue.
    PriceId
);
