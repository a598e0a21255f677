// OpenAI's SDK for Node.
import { input, load } from './modules.mjs';

export const openai = load('openai');
export { input };
