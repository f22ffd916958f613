//! Reading another process's memory, for code that is in no file.

use std::io;

use crate::access::Pid;

/// Copies memory of a process, and says how many bytes could be read: fewer where a page in the
/// middle is not mapped. `EFAULT`: not even the first one is. `EPERM`: needs CAP_SYS_PTRACE, or the
/// same user.
pub fn read(pid: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    if buffer.is_empty() {
        return Ok(0);
    }
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: buffer.len(),
    };
    // SAFETY: `local` names the caller's buffer with its length; `remote` is an address in the other
    // process, which the kernel checks.
    let read = unsafe {
        libc::process_vm_readv(
            pid.0 as libc::pid_t,
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// A word of a process, little-endian; `None` where it cannot be read whole.
pub fn read_word(pid: Pid, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    let read = read(pid, address, &mut word).ok()?;
    (read == word.len()).then(|| u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_reads_as_it_is_and_the_null_page_does_not() {
        let text = b"cache line";
        let own = Pid(std::process::id());
        let mut buffer = [0; 10];
        assert_eq!(
            read(own, text.as_ptr() as u64, &mut buffer).unwrap(),
            text.len()
        );
        assert_eq!(&buffer, text);
        let error = read(own, 0, &mut buffer).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        assert_eq!(read(own, 0, &mut []).unwrap(), 0);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let error = read(Pid(i32::MAX as u32), 4096, &mut [0; 8]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
