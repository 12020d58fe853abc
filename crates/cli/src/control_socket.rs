//! A Unix socket for requests to a running program.

use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The socket's file. It is removed on drop, unless another program has replaced it.
pub struct ControlSocket {
    file: PathBuf,
    id: Option<(u64, u64)>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if id_of(&self.file) == self.id {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Returns the identity of a file, which changes if the file is replaced.
fn id_of(file: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Listens at this path, for this user only. Replaces an existing socket, but no other file.
///
/// # Errors
/// The system's error.
pub fn bind(file: &Path) -> io::Result<(UnixListener, ControlSocket)> {
    remove_socket(file)?;
    // Only this user may connect, from the socket's creation on.
    let mask = rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    let listener = UnixListener::bind(file);
    rustix::process::umask(mask);
    let listener = listener?;
    fs::set_permissions(file, Permissions::from_mode(0o600))?;
    let socket = ControlSocket {
        file: file.to_owned(),
        id: id_of(file),
    };
    Ok((listener, socket))
}

/// Removes a socket, but no other file.
fn remove_socket(file: &Path) -> io::Result<()> {
    match fs::symlink_metadata(file).is_ok_and(|it| it.file_type().is_socket()) {
        true => fs::remove_file(file),
        false => Ok(()),
    }
}
