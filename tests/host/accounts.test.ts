import { expect, test } from 'vitest'
import { homesOfAccounts, lastingHome, namesOfAccounts } from '../../src/host/accounts.ts'

test('The homes of accounts are those where a person or a service keeps files', () => {
  const text = [
    'root:x:0:0:root:/root:/bin/bash',
    'daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin',
    'sync:x:4:65534:sync:/bin:/bin/sync',
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
    'odd:x:7:7::/:/bin/sh',
    'www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin',
    'ann:x:1000:1000:Ann,,,:/home/ann:/bin/bash',
    'twin:x:1001:1001::/home/ann:/bin/bash',
    'relative:x:1002:1002::home:/bin/bash',
    '+@netgroup',
    '',
  ].join('\n')
  expect(homesOfAccounts(text)).toEqual(['/root', '/var/www', '/home/ann'])
})

test('The name of a user id is that of the first account that has it', () => {
  const text =
    'root:x:0:0:root:/root:/bin/bash\ntoor:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n+@netgroup\n'
  expect([...namesOfAccounts(text)].toSorted(([a], [b]) => a - b)).toEqual([
    [0, 'root'],
    [1000, 'ann'],
  ])
})

test.each([
  ['', 33, '/var/www'],
  ['# passwd: sss\n passwd:  files systemd\n', 33, '/var/www'],
  ['passwd: sss files\n', 33, undefined],
  ['passwd: files\n', 4711, undefined],
])('knows a home that only the two files can change: %j, %i', (services, uid, home) => {
  expect(lastingHome('www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n', services, uid)).toBe(home)
})
