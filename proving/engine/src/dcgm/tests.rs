//! The page, family by family.

use super::*;

fn four() -> Gpus {
    Gpus {
        count: 4,
        layers: 36,
        hidden: 2880,
        memory_mib: 81_559,
        weights_mib: 15_000,
        kv_mib: 50_000,
        idle_watts: 100.0,
        busy_watts: 700.0,
        ..Gpus::default()
    }
}

#[test]
fn the_page_has_each_family_once_and_each_gpu_in_it() {
    let (gpus, mut activity) = (four(), Activity::default());
    activity.record(Duration::from_millis(250), 10);
    let activity = activity.close(Duration::from_secs(1), &gpus);
    let page = page(&activity, &gpus, 1, "a \"host\"");
    assert_eq!(
        page.matches("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n").count(),
        1
    );
    assert_eq!(page.matches("\nDCGM_FI_DEV_GPU_UTIL{").count(), 4);
    assert!(page.contains(
        "DCGM_FI_DEV_FB_USED{gpu=\"3\",UUID=\"GPU-00000000-0000-0000-0000-000000000003\",\
         pci_bus_id=\"00000000:04:00.0\",device=\"nvidia3\",modelName=\"simulated\",\
         Hostname=\"a \\\"host\\\"\",hostname=\"a \\\"host\\\"\"} 66024\n"
    ));
    assert!(page.contains("} 25\n"));
    let samples: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(samples.len(), 12 * 4);
    assert!(samples[47].ends_with(" 6220800"));
}
