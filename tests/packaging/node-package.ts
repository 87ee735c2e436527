/** The node that runs the tests as a Debian package `nodejs`: what ours depends on, where the release has too old a one. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { newDirectory } from '../support/directory.ts'

export async function nodePackage(file: string): Promise<void> {
  const { path, remove } = await newDirectory({ mode: 0o755 })
  try {
    for (const directory of ['DEBIAN', 'usr/bin']) await mkdir(join(path, directory), { recursive: true })
    await copyFile(process.execPath, join(path, 'usr/bin/node'))
    const lines = ['Package: nodejs', `Version: ${process.versions.node}`, 'Architecture: all', 'Maintainer: x']
    await writeFile(join(path, 'DEBIAN/control'), [...lines, 'Description: node', ''].join('\n'))
    await execa('dpkg-deb', ['-Znone', '--build', path, file])
  } finally {
    await remove()
  }
}
