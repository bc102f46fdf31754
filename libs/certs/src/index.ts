export type { AuthorityOptions, CertificateOptions, CertificateWithKey } from './authority.ts';
export { createAuthority, issueCertificate } from './authority.ts';
export type { CertificateFolderOptions, WrittenCertificate } from './certificate-folder.ts';
export { issueInFolder, makeFolder } from './certificate-folder.ts';
