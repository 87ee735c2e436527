/** Rows whose fix is on its way; this list goes with the last of them. */
export const PENDING: ReadonlySet<string> = new Set([
  'files.kernel-memory',
  'git.hard-link',
  'state.profile-hard-link',
  'state.created-zone',
  'links.zone-source',
  'links.toolchain',
  'streams.directory',
])
