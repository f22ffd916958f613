//! What the processor says of whoever runs it.

/// The twelve letters by which a hypervisor, or an emulator in its place, names itself (CPUID leaf 0x40000000); `None`
/// where the processor says that there is none (leaf 1, ecx bit 31), or is not x86.
pub fn hypervisor_signature() -> Option<[u8; 12]> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;

        const HYPERVISOR: u32 = 1 << 31;
        let has_hypervisor = __cpuid(1).ecx & HYPERVISOR != 0;
        has_hypervisor.then(|| {
            let said = __cpuid(0x4000_0000);
            let mut name = [0; 12];
            for (bytes, word) in name.chunks_exact_mut(4).zip([said.ebx, said.ecx, said.edx]) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            name
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
