import {
  closeSync,
  constants,
  fchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Gives a temporary file, written as root, to the owner of the file that it will replace, or to the owner of the folder
 * if that file does not exist: otherwise a service without root privileges could not read a file that an operator
 * changed as root.
 * @param handle the open temporary file
 * @throws the error of fchownSync if the owner of an existing file cannot be kept
 */
export function keepOwner(handle: number, file: string): void {
  if (!isRoot()) return;
  const replaced = lstatSync(file, { throwIfNoEntry: false });
  if (replaced === undefined) inheritOwner(handle, file);
  else fchownSync(handle, replaced.uid, replaced.gid);
}

/**
 * Gives a new file or folder, created as root, to the owner of the folder that contains it. It keeps its owner if the
 * file system or the container does not permit the change.
 * @param handle the open file or folder
 */
export function inheritOwner(handle: number, path: string): void {
  if (!isRoot()) return;
  const { uid, gid } = statSync(dirname(path));
  try {
    fchownSync(handle, uid, gid);
  } catch {
    // For example, the owner of the folder has no id in the user namespace of the container.
  }
}

/**
 * Creates a folder with its missing parents, mode 0700. Folders that root creates belong to the owner of the folder
 * that contains them.
 * @throws the error of mkdirSync
 */
export function createPrivateFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first !== undefined) inheritFolderOwner(resolve(folder), resolve(first));
}

/**
 * Gives new folders to the owner of the folder that contains them, as {@link inheritOwner} does.
 * @param first the topmost new folder: a parent of `folder`, or `folder` itself
 */
export function inheritFolderOwner(folder: string, first = folder): void {
  if (!isRoot()) return;
  if (folder.length > first.length) inheritFolderOwner(dirname(folder), first);
  const handle = openSync(folder, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    inheritOwner(handle, folder);
  } finally {
    closeSync(handle);
  }
}

function isRoot(): boolean {
  return process.geteuid?.() === 0;
}
