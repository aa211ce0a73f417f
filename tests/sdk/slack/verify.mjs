// SPDX-License-Identifier: Apache-2.0
// Which of these requests Slack's own framework takes: node verify.mjs SECRET '[{"stamp", "signature", "body"}]'
import bolt from '@slack/bolt';

const [secret, requests] = process.argv.slice(2);
const taken = JSON.parse(requests).map(({ stamp, signature, body }) => bolt.isValidSlackRequest({
  signingSecret: secret, body, headers: { 'x-slack-signature': signature, 'x-slack-request-timestamp': stamp },
}));
console.log(JSON.stringify(taken));
