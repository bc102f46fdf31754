import OpenAI from 'openai';

const openai = new OpenAI();
let previous_response_id;
for (let step = 0; step < 20; step += 1) {
  const input = `Step ${step}.`;
  const asked = { model: process.env.MODEL, input, previous_response_id };
  previous_response_id = (await openai.responses.create(asked)).id;
}
