import { join } from 'node:path'
import { execa } from 'execa'
import { test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test.each(['postinst', 'prerm', 'postrm'])('%s of the Debian package is a program of the shell', async (name) => {
  await execa('sh', ['-n', join(ROOT, 'packaging/deb', name)])
})
