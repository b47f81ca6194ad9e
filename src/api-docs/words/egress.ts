/** API descriptions of outbound proxies. */
import type { WordsByRoute } from './words.ts'

const PATH = '/api/settings/upstream-proxy'
const POOL = '`{id, name, isActive, endpointIds, members: [{endpointId, sortOrder, isActive}], reason}`'
const ENDPOINT = '`{id, name, scheme, host, port, username, isActive, hasPassword, lastTest, failingSince}`'

export const EGRESS_WORDS: WordsByRoute = {
  [`GET ${PATH}`]: {
    does: 'The outbound proxies, their pools, and which accounts use which. Passwords are never returned.',
    answer: '`{routingEnabled, defaultPoolId, endpoints, pools, bindings: [{accountId, poolId, isActive}]}`',
  },
  [`POST ${PATH}/endpoints`]: {
    does: 'Adds a proxy.',
    answer: ENDPOINT,
    throws: ['name_taken'],
    example: { name: 'Frankfurt', scheme: 'socks5h', host: 'proxy.example.com', port: 1080 },
  },
  [`PATCH ${PATH}/endpoints/:id`]: {
    does: 'Changes a proxy. A new scheme, host or port needs the password again.',
    answer: ENDPOINT,
    throws: ['proxy_endpoint_not_found', 'name_taken', 'proxy_password_required'],
    example: { isActive: false },
  },
  [`DELETE ${PATH}/endpoints/:id`]: {
    does: 'Deletes a proxy and takes it out of its pools. Accounts of a pool without a proxy are not used.',
    answer: '`{status: "deleted"}`',
    throws: ['proxy_endpoint_not_found'],
  },
  [`POST ${PATH}/endpoints/:id/test`]: {
    does: 'Loads ChatGPT’s trace page through this proxy, at most 8 s.',
    answer: '`{endpointId, ok, statusCode, elapsedMs, exitAddress, error}`',
    throws: ['proxy_endpoint_not_found'],
  },
  [`POST ${PATH}/pools`]: {
    does: 'Creates a pool. Its proxies are used in order: the next one only if a proxy does not connect.',
    answer: POOL,
    throws: ['name_taken', 'proxy_endpoint_not_found', 'proxy_pool_member_duplicate'],
    example: { name: 'Europe', endpointIds: [] },
  },
  [`PATCH ${PATH}/pools/:id`]: {
    does: 'Renames a pool, or turns it on or off. Accounts of a pool that is off are not used.',
    answer: POOL,
    throws: ['proxy_pool_not_found', 'name_taken'],
    example: { isActive: false },
  },
  [`DELETE ${PATH}/pools/:id`]: {
    does: 'Deletes a pool that no account and no setting uses.',
    answer: '`{status: "deleted"}`',
    throws: ['proxy_pool_not_found', 'proxy_pool_in_use'],
  },
  [`POST ${PATH}/pools/:id/members`]: {
    does: 'Adds a proxy to a pool.',
    answer: POOL,
    throws: ['proxy_pool_not_found', 'proxy_endpoint_not_found', 'proxy_pool_member_duplicate'],
    example: { endpointId: 'egr_…', sortOrder: 0 },
  },
  [`PATCH ${PATH}/pools/:id/members/:endpointId`]: {
    does: 'Changes the place of a proxy in its pool, or turns it off there.',
    answer: POOL,
    throws: ['proxy_pool_not_found', 'proxy_endpoint_not_found'],
    example: { sortOrder: 1 },
  },
  [`DELETE ${PATH}/pools/:id/members/:endpointId`]: {
    does: 'Takes a proxy out of a pool.',
    answer: POOL,
    throws: ['proxy_pool_not_found', 'proxy_endpoint_not_found'],
  },
  [`PUT ${PATH}/accounts/:id/binding`]: {
    does: 'Chooses the pool for every call of an account.',
    answer: '`{accountId, poolId, isActive}`',
    throws: ['account_not_found', 'proxy_pool_not_found'],
    example: { poolId: null },
  },
}
