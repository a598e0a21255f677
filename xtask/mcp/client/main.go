// The client of the official Go SDK, as it comes: it asks a server of the conformance suite for one of everything and prints what it was told,
// so that what it is told by the server itself and through a gate can be compared.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sort"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: os.Args[1]}, nil)
	must("connect", err)
	told := map[string]any{}

	var tools, prompts, resources []string
	for tool, err := range session.Tools(ctx, nil) {
		must("tools/list", err)
		tools = append(tools, tool.Name)
	}
	for prompt, err := range session.Prompts(ctx, nil) {
		must("prompts/list", err)
		prompts = append(prompts, prompt.Name)
	}
	for resource, err := range session.Resources(ctx, nil) {
		must("resources/list", err)
		resources = append(resources, resource.URI)
	}
	sort.Strings(tools)
	sort.Strings(prompts)
	sort.Strings(resources)
	told["tools"], told["prompts"], told["resources"] = tools, prompts, resources

	called, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "test_simple_text", Arguments: map[string]any{}})
	must("tools/call", err)
	told["text"] = called.Content
	failed, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "test_error_handling", Arguments: map[string]any{}})
	must("tools/call", err)
	told["error"] = failed.IsError
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{
		Name:      "test_prompt_with_arguments",
		Arguments: map[string]string{"arg1": "a", "arg2": "b"},
	})
	must("prompts/get", err)
	told["prompt"] = prompt.Messages
	read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-text"})
	must("resources/read", err)
	told["resource"] = read.Contents
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "nobody_has_this", Arguments: map[string]any{}})
	told["refused"] = err != nil
	must("close", session.Close())
	out, err := json.Marshal(told)
	must("print", err)
	os.Stdout.Write(append(out, '\n'))
}

func must(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}
