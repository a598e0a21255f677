//! A simulated fleet: clients, workers and faulty engines in virtual time, one seed.
