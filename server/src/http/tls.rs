//! Certificates and keys from files, and others in their place while the server runs.

use std::fmt::Display;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tideline::{Error, Result};
use tokio_rustls::TlsAcceptor;

/// The files are looked at so often: a certificate is renewed weeks before it ends.
const LOOKS_EVERY: Duration = Duration::from_secs(60);

/// TLS with a certificate and its key from files, whose renewals it takes up. Copies are one.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    files: Arc<CertificateFiles>,
    looks_every: Duration,
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its key: PEM files.
    ///
    /// # Errors
    ///
    /// [`Invalid`](tideline::ErrorKind::Invalid): a file can't be read or holds no such thing, or the key is another
    /// certificate's. The message names the file.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self> {
        let files = Arc::new(CertificateFiles::open(certificate, key)?);
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::internal(format!("TLS has no usual versions: {e}")))?
            .with_no_client_auth()
            .with_cert_resolver(files.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), files, looks_every: LOOKS_EVERY })
    }

    /// Sets the pause between two looks at the files.
    #[must_use]
    pub fn looks_every(self, looks_every: Duration) -> Self {
        Self { looks_every, ..self }
    }

    /// Gives what makes TLS of a connection.
    pub fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Looks at the files now and then, and goes on with what stands there. Of two that do so for one pair of files
    /// either is enough.
    pub(super) async fn renew_for_ever(&self) {
        loop {
            tokio::time::sleep(self.looks_every).await;
            let files = self.files.clone();
            // Files may lie where reading takes its time.
            if tokio::task::spawn_blocking(move || files.renew()).await.is_err() {
                tracing::error!("looking at the certificate has failed; it is looked at again");
            }
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.files.certificate).finish_non_exhaustive()
    }
}

/// A stamp that tells a file from what stood there before: a renewal writes into it, or puts another one, or another
/// link, in its place.
type FileStamp = (u64, u64, u64, i64, i64);

fn stamp(path: &Path) -> io::Result<FileStamp> {
    let of: Metadata = path.metadata()?;
    Ok((of.dev(), of.ino(), of.len(), of.mtime(), of.mtime_nsec()))
}

/// A certificate and its key, as they stood in their files when those were read last.
struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    in_use: RwLock<Arc<CertifiedKey>>,
    seen: Mutex<SeenFiles>,
}

/// The files as they were seen.
struct SeenFiles {
    /// Of those that are in use; `None`: something was in the way.
    stamps: Option<[FileStamp; 2]>,
    /// Why what stands there now is not used: told once.
    told: Option<String>,
}

impl CertificateFiles {
    fn open(certificate: &Path, key: &Path) -> Result<Self> {
        // Before they are read: what is written meanwhile is looked at again.
        let stamps = stamps(certificate, key);
        let in_use = RwLock::new(Arc::new(read(certificate, key)?));
        let seen = Mutex::new(SeenFiles { stamps, told: None });
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), in_use, seen })
    }

    /// Takes up what stands in the files, if that is something else; what can't be read leaves all as it was.
    fn renew(&self) {
        let mut seen = self.seen();
        let stamps = stamps(&self.certificate, &self.key);
        if stamps.is_some() && stamps == seen.stamps {
            seen.told = None;
            return;
        }
        let certificate = self.certificate.display();
        match read(&self.certificate, &self.key) {
            Ok(new) => {
                *self.in_use.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                *seen = SeenFiles { stamps, told: None };
                tracing::info!(%certificate, "the certificate was renewed: new connections get it");
            }
            // Also half of a renewal, of which the other file comes in a moment.
            Err(error) => {
                let why = Some(error.to_string());
                if seen.told != why {
                    tracing::warn!(%certificate, %error, "another certificate can't be used; the one before stays");
                    seen.told = why;
                }
            }
        }
    }

    fn seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for CertificateFiles {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.in_use.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl std::fmt::Debug for CertificateFiles {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateFiles").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

fn stamps(certificate: &Path, key: &Path) -> Option<[FileStamp; 2]> {
    Some([stamp(certificate).ok()?, stamp(key).ok()?])
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey> {
    let refused = |file: &Path, what: &str, why: &dyn Display| {
        Error::invalid(format!("{}: no {what} can be read in it: {why}", file.display()))
    };
    let of_certificate = |why| refused(certificate, "certificate", &why);
    let chain = CertificateDer::pem_file_iter(certificate).map_err(of_certificate)?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(of_certificate)?;
    if chain.is_empty() {
        return Err(refused(certificate, "certificate", &"there is none"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| refused(key, "key", &why))?;
    CertifiedKey::from_der(chain, secret, &ring::default_provider()).map_err(|e| {
        let (certificate, key) = (certificate.display(), key.display());
        Error::invalid(format!("{certificate} and {key} make no TLS together: {e}"))
    })
}
