import os

from openai import OpenAI

client = OpenAI()
for step in range(20):
    with client.responses.stream(model=os.environ["MODEL"], input=f"Step {step}.") as stream:
        stream.get_final_response()
