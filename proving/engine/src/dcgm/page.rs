//! The page as DCGM's exporter writes it.
//!
//! Invariant: one `# HELP` and one `# TYPE` for each family, then one line for each GPU.
//! Not here: where the figures come from (`Activity`).

use std::fmt::Write;

use super::{Activity, Gpus};

/// Memory that driver, runtime and activations take beside weights and KV cache, MiB.
const BESIDE_MIB: u64 = 1024;

pub(super) fn render(activity: &Activity, gpus: &Gpus, hostname: &str) -> String {
    let share = activity.share();
    let nvlink = activity.nvlink_bytes_per_s(gpus).round();
    let used = (gpus.weights_mib + gpus.kv_mib + BESIDE_MIB).min(gpus.memory_mib);
    let families: [(&str, &str, &str, f64); 9] = [
        (
            "DCGM_FI_DEV_GPU_UTIL",
            "gauge",
            "GPU utilization (in %).",
            (share * 100.0).round(),
        ),
        (
            "DCGM_FI_DEV_FB_USED",
            "gauge",
            "Framebuffer memory used (in MiB).",
            used as f64,
        ),
        (
            "DCGM_FI_DEV_FB_FREE",
            "gauge",
            "Framebuffer memory free (in MiB).",
            (gpus.memory_mib - used) as f64,
        ),
        (
            "DCGM_FI_DEV_POWER_USAGE",
            "gauge",
            "Power draw (in W).",
            gpus.watts(share),
        ),
        (
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            "counter",
            "Total energy consumption since boot (in mJ).",
            activity.energy_mj as f64,
        ),
        (
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "gauge",
            "Ratio of time the graphics engine is active.",
            share,
        ),
        (
            "DCGM_FI_PROF_SM_ACTIVE",
            "gauge",
            "Ratio of time at least one warp is active on an SM.",
            share,
        ),
        (
            "DCGM_FI_PROF_NVLINK_TX_BYTES",
            "gauge",
            "NVLink bytes sent a second.",
            nvlink,
        ),
        (
            "DCGM_FI_PROF_NVLINK_RX_BYTES",
            "gauge",
            "NVLink bytes received a second.",
            nvlink,
        ),
    ];
    let mut page = String::new();
    for (family, kind, help, value) in families {
        let _ = writeln!(page, "# HELP {family} {help}\n# TYPE {family} {kind}");
        for gpu in 0..gpus.count {
            let _ = writeln!(page, "{family}{{{}}} {value}", labels(gpu, gpus, hostname));
        }
    }
    page
}

fn labels(gpu: u32, gpus: &Gpus, hostname: &str) -> String {
    format!(
        "gpu=\"{gpu}\",UUID=\"GPU-00000000-0000-0000-0000-{gpu:012x}\",pci_bus_id=\"00000000:{:02X}:00.0\",\
         device=\"nvidia{gpu}\",modelName=\"{}\",hostname=\"{}\"",
        gpu + 1,
        escaped(&gpus.name),
        escaped(hostname),
    )
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
