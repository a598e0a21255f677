// An endpoint picker for tests: Envoy's own messages over gRPC's own library. It names its endpoints in turn once it has the whole
// request, all of them, the next one first; with "x-pick" in the request it names those. It writes a line for what it is told:
// "asked METHOD PATH BYTES" and "served ENDPOINT STATUS".
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	types "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
)

const picked = "x-gateway-destination-endpoint"

type picker struct {
	endpoints []string
	turn      atomic.Uint64
}

func value(h *core.HeaderValue) string {
	if len(h.RawValue) > 0 {
		return string(h.RawValue)
	}
	return h.Value
}

func header(all *core.HeaderMap, name string) string {
	for _, h := range all.GetHeaders() {
		if h.Key == name {
			return value(h)
		}
	}
	return ""
}

// The list for one call.
func (p *picker) list(head *core.HeaderMap) string {
	if wanted := header(head, "x-pick"); wanted != "" {
		return wanted
	}
	n := int(p.turn.Add(1))
	var all []string
	for i := range p.endpoints {
		all = append(all, p.endpoints[(n+i)%len(p.endpoints)])
	}
	return strings.Join(all, ",")
}

func (p *picker) answer(head *core.HeaderMap, bytes int) *extproc.ProcessingResponse {
	fmt.Println("asked", header(head, ":method"), header(head, ":path"), bytes)
	list := p.list(head)
	if status, ok := map[string]types.StatusCode{"429": 429, "503": 503}[list]; ok {
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
			ImmediateResponse: &extproc.ImmediateResponse{Status: &types.HttpStatus{Code: status}},
		}}
	}
	set := []*core.HeaderValueOption{{Header: &core.HeaderValue{Key: picked, RawValue: []byte(list)}}}
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{
			HeaderMutation: &extproc.HeaderMutation{SetHeaders: set},
		}},
	}}
}

func (p *picker) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	var head *core.HeaderMap
	bytes := 0
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var answers []*extproc.ProcessingResponse
		switch step := request.Request.(type) {
		case *extproc.ProcessingRequest_RequestHeaders:
			head = step.RequestHeaders.Headers
			if step.RequestHeaders.EndOfStream {
				answers = append(answers, p.answer(head, 0))
			}
		case *extproc.ProcessingRequest_RequestBody:
			bytes += len(step.RequestBody.Body)
			if step.RequestBody.EndOfStream {
				passes := &extproc.BodyResponse{Response: &extproc.CommonResponse{}}
				answers = append(answers, p.answer(head, bytes), &extproc.ProcessingResponse{
					Response: &extproc.ProcessingResponse_RequestBody{RequestBody: passes},
				})
			}
		case *extproc.ProcessingRequest_ResponseHeaders:
			facts := request.MetadataContext.GetFilterMetadata()["envoy.lb"].GetFields()
			served := facts[picked+"-served"].GetStringValue()
			fmt.Println("served", served, header(step.ResponseHeaders.Headers, ":status"))
			answers = append(answers, &extproc.ProcessingResponse{
				Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{}},
			})
		}
		for _, answer := range answers {
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "where it listens")
	endpoints := flag.String("endpoints", "", "ip:port,ip:port")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		panic(err)
	}
	fmt.Println("listens", listener.Addr())
	server := grpc.NewServer()
	extproc.RegisterExternalProcessorServer(server, &picker{endpoints: strings.Split(*endpoints, ",")})
	panic(server.Serve(listener))
}
