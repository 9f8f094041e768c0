// Judges traffic by NetworkPolicies, with cyclonus' reading of their semantics. A line of JSON on stdin is a
// question: {"policies": [NetworkPolicy…], "traffic": [Traffic…]}; a line on stdout is the answer: for each
// traffic whether it may leave its source and enter its destination.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	networking "k8s.io/api/networking/v1"
)

type question struct {
	Policies []*networking.NetworkPolicy `json:"policies"`
	Traffic  []*matcher.Traffic          `json:"traffic"`
}

type verdict struct {
	Leaves bool `json:"leaves"`
	Enters bool `json:"enters"`
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		// Not simplified: what is asked is what the policies mean as they are written.
		policies := matcher.BuildNetworkPolicies(false, asked.Policies)
		verdicts := make([]verdict, len(asked.Traffic))
		for i, traffic := range asked.Traffic {
			judged := policies.IsTrafficAllowed(traffic)
			verdicts[i] = verdict{Leaves: judged.Egress.IsAllowed(), Enters: judged.Ingress.IsAllowed()}
		}
		if err := answers.Encode(verdicts); err != nil {
			log.Fatal(err)
		}
	}
}
