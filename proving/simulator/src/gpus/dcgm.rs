//! What a DCGM exporter shows of the GPUs: its families and labels, as data.
//!
//! Invariant: the names, units and labels are those of the exporter; every GPU of an engine has the same figures.
//! Not here: the page (`engine`), samples of it (`campaign`).

use super::{Activity, Gpus};

/// Memory that driver, runtime and activations take beside weights and KV cache, MiB.
const BESIDE_MIB: u64 = 1024;

/// One family, and where each GPU stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// Such as `DCGM_FI_DEV_GPU_UTIL`.
    pub name: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// As the exporter explains it, with its unit.
    pub help: &'static str,
    /// The figure.
    pub value: f64,
}

/// Every family over a while that is closed.
#[must_use]
pub fn families(activity: &Activity, gpus: &Gpus) -> [Family; 12] {
    let share = activity.share();
    let nvlink = activity.nvlink_bytes_per_s(gpus).round();
    let used = (gpus.weights_mib + gpus.kv_mib + BESIDE_MIB).min(gpus.memory_mib);
    let [gauge, counter] = ["gauge", "counter"].map(|kind| {
        move |name: &'static str, help: &'static str, value: f64| Family {
            name,
            kind,
            help,
            value,
        }
    });
    [
        gauge(
            "DCGM_FI_DEV_GPU_UTIL",
            "GPU utilization (in %).",
            (share * 100.0).round(),
        ),
        gauge("DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", 0.0),
        gauge("DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", 0.0),
        gauge(
            "DCGM_FI_DEV_XID_ERRORS",
            "Value of the last XID error encountered.",
            0.0,
        ),
        gauge(
            "DCGM_FI_DEV_FB_USED",
            "Framebuffer memory used (in MiB).",
            used as f64,
        ),
        gauge(
            "DCGM_FI_DEV_FB_FREE",
            "Framebuffer memory free (in MiB).",
            (gpus.memory_mib - used) as f64,
        ),
        gauge(
            "DCGM_FI_DEV_POWER_USAGE",
            "Power draw (in W).",
            gpus.watts(share),
        ),
        counter(
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            "Total energy consumption since boot (in mJ).",
            activity.energy_mj as f64,
        ),
        gauge(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "Ratio of time the graphics engine is active.",
            share,
        ),
        gauge(
            "DCGM_FI_PROF_SM_ACTIVE",
            "Ratio of time at least one warp is active on an SM.",
            share,
        ),
        gauge(
            "DCGM_FI_PROF_NVLINK_TX_BYTES",
            "NVLink bytes sent a second.",
            nvlink,
        ),
        gauge(
            "DCGM_FI_PROF_NVLINK_RX_BYTES",
            "NVLink bytes received a second.",
            nvlink,
        ),
    ]
}

/// The labels of one GPU, in the exporter's order. The host is named twice: exporters before 4.5 say `Hostname`, later
/// ones `hostname`.
#[must_use]
pub fn labels(gpu: u32, gpus: &Gpus, hostname: &str) -> [(&'static str, String); 7] {
    [
        ("gpu", gpu.to_string()),
        ("UUID", format!("GPU-00000000-0000-0000-0000-{gpu:012x}")),
        ("pci_bus_id", format!("00000000:{:02X}:00.0", gpu + 1)),
        ("device", format!("nvidia{gpu}")),
        ("modelName", gpus.name.clone()),
        ("Hostname", hostname.to_owned()),
        ("hostname", hostname.to_owned()),
    ]
}
