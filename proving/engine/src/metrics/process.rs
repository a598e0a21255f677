//! The process's own families, as Prometheus' client libraries name them, from `/proc`.
//!
//! Invariant: a figure that cannot be read is left out, never made up.
//! Not here: what the engine does (the parent).

use std::fs;

use super::histogram::line;

/// Ticks of `/proc/self/stat` in a second: the kernel's `USER_HZ`, which is 100 on every architecture that Rust's
/// standard library supports on Linux, but for Alpha and IA-64.
const TICKS_PER_S: f64 = 100.0;

/// Writes what can be read now.
pub(super) fn write(out: &mut String) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |name: &str| Some(first_number(after(&status, name)?)? * 1024.0);
    let ticks = |field: usize| Some(field_of(&stat, field)? / TICKS_PER_S);
    let families: [(&str, &str, &str, Option<f64>); 6] = [
        (
            "process_virtual_memory_bytes",
            "gauge",
            "Virtual memory size in bytes.",
            kib("VmSize:"),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory size in bytes.",
            kib("VmRSS:"),
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "Start time of the process since unix epoch in seconds.",
            booted().zip(ticks(22)).map(|(boot, start)| boot + start),
        ),
        (
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            ticks(14).zip(ticks(15)).map(|(user, system)| user + system),
        ),
        (
            "process_open_fds",
            "gauge",
            "Number of open file descriptors.",
            fs::read_dir("/proc/self/fd")
                .ok()
                .map(|all| all.count() as f64),
        ),
        (
            "process_max_fds",
            "gauge",
            "Maximum number of open file descriptors.",
            most_descriptors(),
        ),
    ];
    for (name, kind, help, value) in families {
        let Some(value) = value else { continue };
        line(
            out,
            format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value:?}"),
        );
    }
}

fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Field `number` of `/proc/self/stat`, counted from 1 as in its manual. The second is the program's name in
/// parentheses, which may hold anything.
fn field_of(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

/// When the machine started, in seconds since 1970.
fn booted() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    first_number(after(&stat, "btime")?)
}

fn most_descriptors() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    first_number(after(&limits, "Max open files")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 4321 1000 5";
        assert_eq!(field_of(stat, 14), Some(250.0));
        assert_eq!(field_of(stat, 22), Some(4321.0));
        assert_eq!(field_of(stat, 99), None);
    }

    #[test]
    fn this_process_has_memory_descriptors_and_a_start() {
        let mut page = String::new();
        write(&mut page);
        let value = |name: &str| first_number(after(&page, &format!("{name} ")).expect(name));
        assert!(value("process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e6));
        assert!(value("process_open_fds").is_some_and(|count| count >= 3.0));
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970")
            .as_secs_f64();
        let age = now - value("process_start_time_seconds").unwrap_or(0.0);
        assert!((-5.0..3600.0).contains(&age), "{age}");
    }
}
