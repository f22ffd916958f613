//! The processor: what it is, its caches, and whether it is real.

use serde::Serialize;

use super::tree::{Tree, field};

/// The first processor of `/proc/cpuinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Machine name as `uname -m` has it: `x86_64`, `aarch64`.
    pub architecture: Option<String>,
    /// x86 `vendor_id` (`GenuineIntel`, `AuthenticAMD`); elsewhere the implementer's number as printed.
    pub vendor: Option<String>,
    /// Marketing name; Arm kernels print none.
    pub name: Option<String>,
    /// x86 family, as printed (extended family added).
    pub family: Option<u32>,
    /// x86 model, or Arm part number.
    pub model: Option<u32>,
    /// Whether the CPU says that a hypervisor is present (CPUID leaf 1, ecx bit 31); x86 only.
    #[serde(skip)]
    pub hypervisor_bit: Option<bool>,
    /// Bytes that `clflush` writes back; x86 only.
    #[serde(skip)]
    pub clflush_bytes: Option<u32>,
}

impl Processor {
    pub(super) fn probe(tree: &Tree<'_>) -> Self {
        let text = tree.text("proc/cpuinfo").unwrap_or_default();
        let get = |key| field(&text, key, ':').filter(|value| !value.is_empty());
        let number = |key| get(key).and_then(parse_number);
        let flags = get("flags");
        Processor {
            architecture: tree
                .line("proc/sys/kernel/arch")
                .or_else(|| architecture(&text).map(str::to_owned)),
            vendor: get("vendor_id")
                .or_else(|| get("CPU implementer"))
                .map(str::to_owned),
            name: get("model name").map(str::to_owned),
            family: number("cpu family"),
            model: number("model").or_else(|| number("CPU part")),
            hypervisor_bit: flags.map(|f| f.split_whitespace().any(|flag| flag == "hypervisor")),
            clflush_bytes: number("clflush size"),
        }
    }

    /// Whether the CPU is Intel's.
    pub fn is_intel(&self) -> bool {
        self.vendor.as_deref() == Some("GenuineIntel")
    }

    /// Whether the CPU is AMD's (or Hygon's, the same core).
    pub fn is_amd(&self) -> bool {
        matches!(
            self.vendor.as_deref(),
            Some("AuthenticAMD" | "HygonGenuine")
        )
    }
}

/// `/proc/sys/kernel/arch` is younger (6.1) than the kernels we run on; the shape of cpuinfo tells too.
fn architecture(cpuinfo: &str) -> Option<&'static str> {
    if let Some(flags) = field(cpuinfo, "flags", ':') {
        return flags
            .split_whitespace()
            .any(|flag| flag == "lm")
            .then_some("x86_64");
    }
    if field(cpuinfo, "CPU implementer", ':').is_some() {
        return (field(cpuinfo, "CPU architecture", ':') == Some("8")).then_some("aarch64");
    }
    field(cpuinfo, "isa", ':')?
        .starts_with("rv64")
        .then_some("riscv64")
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Bare metal or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Virtualization {
    /// No hypervisor shows itself.
    BareMetal,
    /// A guest whose processors are programs: they do not wait for memory as real ones do.
    SoftwareEmulation {
        /// Whose: `QEMU TCG`.
        emulator: &'static str,
    },
    /// A guest.
    Guest {
        /// Whose: `KVM`, `Xen`, `VMware`, `Hyper-V`, `VirtualBox`; `None` when it does not say.
        hypervisor: Option<&'static str>,
    },
}

/// What QEMU's code generator answers to CPUID leaf 0x40000000 (target/i386/cpu.c of QEMU).
const TCG_SIGNATURE: &[u8; 12] = b"TCGTCGTCGTCG";
/// What it calls the models that are none of a maker's (`qemu64`, `max`).
const TCG_NAME: &str = "QEMU TCG CPU";

impl Virtualization {
    /// The program that the processors are, where they are one.
    pub fn emulator(&self) -> Option<&'static str> {
        match self {
            Virtualization::SoftwareEmulation { emulator } => Some(emulator),
            Virtualization::BareMetal | Virtualization::Guest { .. } => None,
        }
    }

    /// From six witnesses, best first: the signature and the name of a processor that is a program, the hypervisor's own
    /// sysfs, the clock it offers, the firmware's names, and the CPU's hypervisor bit. `signature` is what CPUID says,
    /// where it was asked.
    pub(super) fn probe(
        tree: &Tree<'_>,
        processor: &Processor,
        signature: Option<[u8; 12]>,
    ) -> Option<Self> {
        let named = (processor.name.as_deref()).is_some_and(|name| name.starts_with(TCG_NAME));
        if signature.as_ref() == Some(TCG_SIGNATURE) || signature.is_none() && named {
            return Some(Virtualization::SoftwareEmulation {
                emulator: "QEMU TCG",
            });
        }
        let firmware = |name: &str| tree.line(&format!("sys/class/dmi/id/{name}"));
        let vendor = firmware("sys_vendor").unwrap_or_default();
        let product = firmware("product_name").unwrap_or_default();
        let clocks = tree
            .line("sys/devices/system/clocksource/clocksource0/available_clocksource")
            .unwrap_or_default();
        let xen = tree.line("sys/hypervisor/type").is_some_and(|t| t == "xen");

        let has_clock = |prefix: &str| clocks.split_whitespace().any(|c| c.starts_with(prefix));
        let hypervisor = if xen || has_clock("xen") {
            Some("Xen")
        } else if has_clock("kvm-clock") {
            Some("KVM")
        } else if has_clock("hyperv_") {
            Some("Hyper-V")
        } else {
            hypervisor_of_firmware(&vendor, &product)
        };
        match (processor.hypervisor_bit, hypervisor) {
            // Paravirtual Xen, the host's own domain included, leaves the bit clear.
            (Some(false), Some("Xen")) | (Some(true), _) | (None, Some(_)) => {
                Some(Virtualization::Guest { hypervisor })
            }
            // Whatever the firmware says: Chromebooks, too, are made by `Google`.
            (Some(false), _) => Some(Virtualization::BareMetal),
            // Elsewhere than on x86 the firmware is all there is; real machines name themselves too.
            (None, None) => (!vendor.is_empty()).then_some(Virtualization::BareMetal),
        }
    }
}

/// What the system's firmware calls itself. Cloud vendors sell bare metal under the same vendor name and
/// say `metal` in the product.
fn hypervisor_of_firmware(vendor: &str, product: &str) -> Option<&'static str> {
    if product.contains("metal") {
        return None;
    }
    match vendor {
        "QEMU" | "Amazon EC2" | "Google" | "Google Inc." | "OpenStack Foundation" => Some("KVM"),
        "Xen" => Some("Xen"),
        "innotek GmbH" => Some("VirtualBox"),
        "Microsoft Corporation" if product == "Virtual Machine" => Some("Hyper-V"),
        _ if vendor.starts_with("VMware") => Some("VMware"),
        _ if product.contains("KVM") => Some("KVM"),
        _ => None,
    }
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache that a CPU sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Capacity in bytes.
    pub size_bytes: Option<u64>,
    /// Coherence granule in bytes.
    #[serde(skip)]
    pub line_bytes: Option<u32>,
}

impl Cache {
    /// The caches of one CPU, nearest first; empty when the kernel does not know them.
    pub(super) fn probe(tree: &Tree<'_>, cpu: u32) -> Vec<Cache> {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let names = tree.names(&directory);
        let mut caches: Vec<Cache> = names
            .iter()
            .filter(|name| name.starts_with("index"))
            .filter_map(|name| {
                let file = |leaf: &str| format!("{directory}/{name}/{leaf}");
                Some(Cache {
                    level: tree.number(&file("level"))?,
                    kind: match tree.line(&file("type"))?.as_str() {
                        "Data" => CacheKind::Data,
                        "Instruction" => CacheKind::Instruction,
                        "Unified" => CacheKind::Unified,
                        _ => return None,
                    },
                    size_bytes: tree.line(&file("size")).and_then(|text| parse_size(&text)),
                    line_bytes: tree.number(&file("coherency_line_size")),
                })
            })
            .collect();
        caches.sort_by_key(|cache| cache.level);
        caches
    }
}

/// Sysfs prints KiB with a `K`; zero means that it does not know.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (bytes != 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{self, Fixture},
        *,
    };

    fn virtualization(fixture: &Fixture) -> Option<Virtualization> {
        let tree = Tree::new(fixture.root());
        Virtualization::probe(&tree, &Processor::probe(&tree), None)
    }

    fn guest(hypervisor: &'static str) -> Virtualization {
        Virtualization::Guest {
            hypervisor: Some(hypervisor),
        }
    }

    #[test]
    fn a_guest_is_known_by_its_cpu_and_named_by_clock_or_firmware() {
        let machine = fixture::kvm_amd();
        assert_eq!(virtualization(&machine), Some(guest("KVM")));
        machine.remove("sys/devices/system/clocksource/clocksource0/available_clocksource");
        assert_eq!(
            virtualization(&machine),
            Some(Virtualization::Guest { hypervisor: None })
        );
        machine.write("sys/class/dmi/id/sys_vendor", "VMware, Inc.\n");
        assert_eq!(virtualization(&machine), Some(guest("VMware")));
    }

    #[test]
    fn a_processor_that_is_a_program_is_known_by_its_signature_whatever_it_is_called() {
        let machine = fixture::kvm_amd();
        let tree = Tree::new(machine.root());
        let processor = Processor::probe(&tree);
        let probe = |processor: &Processor, signature: &[u8; 12]| {
            Virtualization::probe(&tree, processor, Some(*signature))
        };
        let emulated = Some(Virtualization::SoftwareEmulation {
            emulator: "QEMU TCG",
        });
        assert_eq!(probe(&processor, TCG_SIGNATURE), emulated);
        assert_eq!(probe(&processor, b"KVMKVMKVM\0\0\0"), Some(guest("KVM")));
        let generic = Processor {
            name: Some("QEMU TCG CPU version 2.5+".to_owned()),
            ..processor
        };
        assert_eq!(Virtualization::probe(&tree, &generic, None), emulated);
        let signature = b"KVMKVMKVM\0\0\0";
        assert_eq!(probe(&generic, signature), Some(guest("KVM")));
    }

    #[test]
    fn bare_metal_of_a_cloud_vendor_is_not_a_guest() {
        let machine = fixture::intel_sapphire_rapids();
        assert_eq!(virtualization(&machine), Some(Virtualization::BareMetal));
        machine.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        machine.write("sys/class/dmi/id/product_name", "m7i.metal-48xl\n");
        assert_eq!(virtualization(&machine), Some(Virtualization::BareMetal));

        let machine = fixture::arm_spe();
        assert_eq!(virtualization(&machine), None, "no firmware tables");
        machine.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        machine.write("sys/class/dmi/id/product_name", "c7g.metal\n");
        assert_eq!(virtualization(&machine), Some(Virtualization::BareMetal));
        machine.write("sys/class/dmi/id/product_name", "c7g.large\n");
        assert_eq!(virtualization(&machine), Some(guest("KVM")));
    }

    #[test]
    fn a_laptop_made_by_a_cloud_vendor_is_not_a_guest_and_a_xen_domain_is() {
        let machine = fixture::amd_zen4();
        machine.write("sys/class/dmi/id/sys_vendor", "Google\n");
        assert_eq!(virtualization(&machine), Some(Virtualization::BareMetal));
        machine.write("sys/hypervisor/type", "xen\n");
        assert_eq!(virtualization(&machine), Some(guest("Xen")));
    }

    #[test]
    fn an_arm_processor_has_a_part_number_and_no_hypervisor_bit() {
        let machine = fixture::arm_spe();
        let processor = Processor::probe(&Tree::new(machine.root()));
        assert_eq!(processor.architecture.as_deref(), Some("aarch64"));
        assert_eq!(processor.vendor.as_deref(), Some("0x41"));
        assert_eq!(processor.model, Some(0xd40));
        assert_eq!(processor.hypervisor_bit, None);
    }

    #[test]
    fn sizes_carry_a_unit_and_zero_is_unknown() {
        assert_eq!(parse_size("48K"), Some(48 << 10));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        for garbage in ["0K", "", "K", "-1K", "1T", "18446744073709551615K", "48 K"] {
            assert_eq!(parse_size(garbage), None, "{garbage:?}");
        }
    }
}
