export type { AuthorityOptions, CertificateOptions, CertificateWithKey } from './authority.ts';
export { createAuthority, issueCertificate } from './authority.ts';
export type { CertificateFolderOptions, WrittenCertificate } from './certificate-folder.ts';
export { createFolder, issueInFolder, trustDomainOf } from './certificate-folder.ts';
export { beginReplacement, finishReplacement, issueReplacement } from './replace-authority.ts';
