// A directory -> a compressed archive, the same bytes each time: neither the user nor the clock of this machine shows.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'

/** @param top the directory in the archive that its files are in */
export function pack(stage, { file, top, seconds }) {
  const tar = ['--sort=name', '--format=ustar', `--mtime=@${seconds}`, '--owner=0', '--group=0', '--numeric-owner']
  // Hard links become separate files, because not every program that unpacks follows a hard link. Links are left as they are.
  const modes = ['--mode=u+rwX,go+rX,go-w', '--hard-dereference']
  const words = [...tar, ...modes, '-C', stage, `--transform=flags=r;s,^\\.,${top},`, '-cf', '-', '.']
  const archive = execFileSync('tar', words, { maxBuffer: 1 << 28 })
  writeFileSync(file, execFileSync('gzip', ['-9n'], { input: archive, maxBuffer: 1 << 28 }))
}
